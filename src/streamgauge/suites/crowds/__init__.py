"""Servers and crowds of clients as processes: the cost of both, and the correctness and freshness of answers."""
