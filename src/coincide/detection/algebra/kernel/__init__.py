"""The kernel tier: columns in, columns out, and the state between steps."""
