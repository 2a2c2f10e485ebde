"""Servers and crowds of clients as processes of their own, what both cost, and how right and fresh the answers were."""
