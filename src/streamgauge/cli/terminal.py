"""Where commands print: the terminal, or what stands in for one."""

import os
import sys
from typing import Final

from rich.console import Console
from rich.table import Table

WIDTH: Final = 80
"""Columns of what is not printed to a terminal, unless the variable ``COLUMNS`` says otherwise."""


def table(*columns: str, title: str | None = None) -> Table:
    """A table that loses nothing where it is narrow: words that are too long go on in the next line."""
    made = Table(title=title)
    for column in columns:
        made.add_column(column, overflow="fold")
    return made


def printing() -> Console:
    """Standard output, as wide as the terminal that it is."""
    return Console() if sys.stdout.isatty() or os.environ.get("COLUMNS") else Console(width=WIDTH)
