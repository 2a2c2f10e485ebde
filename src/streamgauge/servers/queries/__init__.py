"""Continuous queries that run: one core for Python programs, the command line and the web."""
