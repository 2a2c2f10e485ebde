"""Changing Linked Data at low server cost: fragments with time, and a client that keeps its answer current."""
