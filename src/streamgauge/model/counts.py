"""Counts with their nouns, as sentences have them."""


def counted(count: int, noun: str) -> str:
    """A count with its noun: ``1 window``, ``2,000 windows``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
