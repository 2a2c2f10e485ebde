"""Semantic publish and subscribe: clients change facts, channels are queries, changes of their answers are sent."""

from typing import Final

LARGEST_MESSAGE: Final = 6 * 2**20
"""Maximum bytes of a notification or answer for a client: the rows of two, one in use and one read, take 45 MiB."""
