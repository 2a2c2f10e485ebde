"""Semantic publish and subscribe: clients change facts, channels are queries, changes of their answers are sent."""

from typing import Final

LARGEST_MESSAGE: Final = 6 * 2**20
"""Maximum bytes of a client's notification or answer; the rows of two, one in use and one being read, take 45 MiB."""
