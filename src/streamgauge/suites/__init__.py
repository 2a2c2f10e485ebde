"""Suites: measurements as configurations of the harness."""
