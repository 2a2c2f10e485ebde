"""Reproductions of published tables and figures: a folder per paper, with its published values as data."""
