"""Experiments of the papers on distribution, repeatable by a command."""
