"""Boundaries, each held to one set of guards: sockets, clients, sinks of text, files that are read back, principals."""
