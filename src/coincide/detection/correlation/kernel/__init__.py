"""Descriptions over columns: kernel.py steps, join.py finds combinations, state.py is kept between steps."""
