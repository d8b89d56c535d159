"""From definitions to nodes."""
