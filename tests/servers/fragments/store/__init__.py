"""Stores of quads, held against a list."""
