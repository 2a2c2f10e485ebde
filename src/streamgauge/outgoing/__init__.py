"""Outgoing requests, the only package that may make them: rules for addresses, deadlines and byte bounds.

All other packages use only the types of ``httpx``; ruff (``banned-api`` in pyproject.toml) refuses its clients.
"""
