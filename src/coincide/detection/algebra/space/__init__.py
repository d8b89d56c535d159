"""Places of events: restrictions to them, and what is looked up by them."""
