"""The terminal that commands print tables and progress to, or its stand-in."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, Final, Protocol

from rich.console import Console, ConsoleOptions, RenderableType
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.segment import Segment
from rich.text import Text

from streamgauge.model.controls import visible
from streamgauge.model.phrases import elapsed
from streamgauge.spark.contexts import running_context

if TYPE_CHECKING:
    from streamgauge.report.fitting_table import FittingTable


class Terminal(Console):
    """A console that shows control characters in whatever it prints, within markup too."""

    @property
    def file(self) -> IO[str]:
        """The stream behind the visible one, for the console's own escape sequences."""
        stream = Console.file.fget(self)  # type: ignore[attr-defined]
        exact: IO[str] = getattr(stream, "exact", stream)
        return exact

    @file.setter
    def file(self, stream: IO[str]) -> None:
        self._file = stream

    def render_str(self, text: str, **options: Any) -> Text:
        """The text of a string, whose markup may hold addresses."""
        return super().render_str(visible(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The segments of anything that can be printed; a text is made visible before it is wrapped."""
        if isinstance(renderable, Text) and (plain := visible(renderable.plain)) != renderable.plain:
            renderable = Text(plain, renderable.style, justify=renderable.justify, overflow=renderable.overflow)
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)


EVERY: Final = 10.0
"""Seconds between two lines of a command that does not print to a terminal."""

LONG: Final = 60.0
"""Seconds from which on a command says before it begins how long it takes."""

LEAST: Final = 0.05
"""Seconds that the thread waits at least before it looks at the clock again."""


class Tell(Protocol):
    """A function that hears what is being done and which share (0 to 1) is done; the share never goes back."""

    def __call__(self, what: str, share: float | None = None, /) -> None:
        """Tell; without a share the last one stands."""


class Reason(str):
    """Words about a choice, told once: what is being done goes on."""

    __slots__ = ()


class ProgressLog:
    """Lines about a command, at most one every ``every`` seconds of ``clock``, the first after as long.

    ``detail`` adds to a line what nobody told, such as the tasks of a Spark job. Threads may share a log.
    """

    def __init__(
        self,
        command: str,
        write: Callable[[str], object],
        clock: Callable[[], float] = time.monotonic,
        every: float = EVERY,
        detail: Callable[[], str] = lambda: "",
    ) -> None:
        self._command, self._write, self._clock, self._every, self._detail = command, write, clock, every, detail
        self._began = self._last = clock()
        self._what, self._share, self._reason = "", 0.0, ""
        self._lock = threading.Lock()

    def tell(self, what: str, share: float | None = None, /) -> None:
        """Remember what is being done; print a line if one is due."""
        with self._lock:
            if isinstance(what, Reason):
                self._reason = what
            else:
                self._what = what
            self._share = max(self._share, share or 0.0)
            self._print()

    def beat(self) -> float:
        """Print a line if one is due; the seconds until the next one is."""
        with self._lock:
            self._print()
            return self._last + self._every - self._clock()

    def _print(self) -> None:
        now = self._clock()
        if now - self._last < self._every:
            return
        self._last = now
        what = f"{self._what} by {self._reason}" if self._reason else self._what
        self._reason = ""
        parts = (what, f"{self._share:.0%}" if self._share else "", f"after {elapsed(now - self._began)}")
        detail = self._detail()
        self._write(f"{self._command}: {', '.join(filter(None, parts))}{f'; {detail}' if detail else ''}")


def foretold(command: str, seconds: float, why: str) -> str | None:
    """The sentence before something that takes ``LONG`` or more, ``None`` for less; ``why`` says what takes so long."""
    return f"{command}: this takes {elapsed(seconds)} at least: {why}" if seconds >= LONG else None


@contextmanager
def telling(console: Console, command: str, every: float | None = None) -> Iterator[Tell]:
    """The progress of a command while it runs; a line each ``every`` seconds where there is no terminal."""
    if console.is_terminal:
        with _bar(console) as bar:
            task = bar.add_task(command, total=None)

            def tell(what: str, share: float | None = None, /) -> None:
                done = max(bar.tasks[task].completed, share or 0.0)
                bar.update(task, description=escape(f"{command}: {what}"), completed=done, total=1.0 if done else None)

            yield tell
        return
    log = ProgressLog(command, lambda line: _line(console, line), every=EVERY if every is None else every, detail=tasks)
    ended = threading.Event()
    thread = threading.Thread(target=_beat, args=(log, ended), daemon=True, name="progress")
    thread.start()
    try:
        yield log.tell
    finally:
        ended.set()
        thread.join()


def _bar(console: Console) -> Progress:
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    return Progress(*columns, console=console, transient=True, redirect_stdout=sys.stdout.isatty())


def _line(console: Console, line: str) -> None:
    console.print(line, markup=False, highlight=False, soft_wrap=True)


def _beat(log: ProgressLog, ended: threading.Event) -> None:
    while not ended.wait(max(LEAST, log.beat())):
        pass


def tasks() -> str:
    """How far the running jobs of this process's Spark session are, empty where there are none."""
    context = running_context()
    if context is None:
        return ""
    try:
        tracker = context.statusTracker()
        stages = list(filter(None, map(tracker.getStageInfo, tracker.getActiveStageIds())))
    except Exception:  # the session ends meanwhile: py4j raises many kinds of errors
        return ""
    done, of = sum(stage.numCompletedTasks for stage in stages), sum(stage.numTasks for stage in stages)
    return f"Spark: {done:,} of {of:,} tasks" if stages else ""


WIDTH: Final = 80
"""Columns of what is not printed to a terminal, unless the variable ``COLUMNS`` says otherwise."""


def table(*columns: str, title: str | None = None) -> FittingTable:
    """A table of these columns, which loses nothing where the terminal is narrow."""
    from streamgauge.report.fitting_table import FittingTable

    return FittingTable(*columns, title=title)


def printing() -> Terminal:
    """Standard output, as wide as the terminal that it is."""
    return Terminal() if sys.stdout.isatty() or os.environ.get("COLUMNS") else Terminal(width=WIDTH)
