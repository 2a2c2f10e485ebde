"""Semantic publish and subscribe: facts come and go, channels are queries, changes of their answers are sent."""

from typing import Final

LARGEST_MESSAGE: Final = 6 * 2**20
"""Bytes of a notification or answer that a client takes: rows of two such take 45 MiB, one in use and one read."""
