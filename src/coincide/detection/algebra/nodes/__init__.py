"""Nodes: the operators of the algebra, as the interpreter evaluates them."""
