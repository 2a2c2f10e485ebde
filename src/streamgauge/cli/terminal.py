"""Where commands print: the terminal, or what stands in for one."""

import sys
from typing import Final

from rich.console import Console

WIDTH: Final = 160
"""Of tables that are not printed to a terminal."""


def printing() -> Console:
    """Standard output, as wide as the terminal that it is."""
    return Console() if sys.stdout.isatty() else Console(width=WIDTH)
