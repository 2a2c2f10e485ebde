"""Stores of a data set's quads: ours beside others, and the growth of their cost."""
