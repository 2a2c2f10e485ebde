"""Sealed journals: files of a server that survive crashes and detect damage."""
