"""Outgoing requests: the one package whose clients may make them, with rules of addresses, deadlines and byte bounds.

Everywhere else ``httpx`` lends its types only; ruff (``banned-api`` in pyproject.toml) refuses what would connect.
"""
