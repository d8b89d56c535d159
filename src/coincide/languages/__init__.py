"""The languages as the compiler sees them: each binds what lang/ parses to a model of detection."""
