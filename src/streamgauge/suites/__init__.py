"""Suites: measurements built from configurations of the harness."""
