"""Where detection happens: descriptions and expressions divided, placed in a network, and moved."""
