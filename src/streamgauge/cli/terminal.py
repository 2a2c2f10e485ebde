"""Where commands print: the terminal, or what stands in for one."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Final

from rich.console import Console
from rich.markup import escape

Tell = Callable[[str], None]
"""Told what is being done."""

WIDTH: Final = 160
"""Of tables that are not printed to a terminal."""


def printing() -> Console:
    """Standard output, as wide as the terminal that it is."""
    return Console() if sys.stdout.isatty() else Console(width=WIDTH)


@contextmanager
def telling(console: Console, beginning: str) -> Iterator[Tell]:
    """What is being done: one line in a terminal, a line with the time for each elsewhere, as in a log."""
    if not console.is_terminal:
        yield lambda what: console.print(f"{datetime.now():%H:%M:%S} {what}", markup=False)
        return
    with console.status(beginning) as status:
        yield lambda what: status.update(f"{beginning}: {escape(what)}")
