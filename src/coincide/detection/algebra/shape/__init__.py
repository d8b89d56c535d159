"""Definitions as the kernel tier sees them, and which of them it can do."""
