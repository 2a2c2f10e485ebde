"""The console on which commands print tables and progress."""

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
    """A console that makes control characters visible in everything it prints, also within markup."""

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
        """The text of a string with markup, control characters made visible."""
        return super().render_str(visible(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The segments of a renderable; text is made visible before it is wrapped."""
        if isinstance(renderable, Text) and (plain := visible(renderable.plain)) != renderable.plain:
            renderable = Text(plain, renderable.style, justify=renderable.justify, overflow=renderable.overflow)
        for segment in super().render(renderable, options):
            # Again, as other renderables than texts have segments of their own; a control segment is the console's.
            yield segment if segment.control else Segment(visible(segment.text), segment.style)


def close_output() -> None:
    """End standard output, whose reader has gone (as ``head`` does): what is still written to it is lost."""
    # Else Python would report the broken pipe again when it flushes standard output at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


EVERY: Final = 10.0
"""Interval (s) of progress lines if there is no terminal."""

LONG: Final = 60.0
"""Duration (s) from which a command announces its estimate before it starts."""

LEAST: Final = 0.05
"""Minimum interval (s) at which the progress thread checks the clock."""


class Tell(Protocol):
    """A progress function: what is being done, and the share done (0 to 1), which never decreases."""

    def __call__(self, what: str, share: float | None = None, /) -> None:
        """Report progress; without a share the last one remains."""


class Reason(str):
    """The reason for a choice, printed once with the current step."""

    __slots__ = ()


class ProgressLog:
    """Prints progress lines, at most one every ``every`` seconds of ``clock``; thread-safe.

    ``detail`` adds to a line what is not reported by ``tell``, such as the tasks of a Spark job.
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
        """Store the current step; print a line if one is due."""
        with self._lock:
            if isinstance(what, Reason):
                self._reason = what
            else:
                self._what = what
            self._share = max(self._share, share or 0.0)
            self._print()

    def beat(self) -> float:
        """Print a line if one is due; returns the seconds until the next one."""
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
    """The announcement of something that takes ``LONG`` or more, else ``None``; ``why`` is its reason."""
    return f"{command}: this takes {elapsed(seconds)} at least: {why}" if seconds >= LONG else None


@contextmanager
def telling(console: Console, command: str, every: float | None = None) -> Iterator[Tell]:
    """Show a command's progress while it runs: a bar on a terminal, else a line each ``every`` seconds."""
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
    # Redirected output would be drawn on the console, which is standard error, and never reach its file or pipe.
    return Progress(*columns, console=console, transient=True, redirect_stdout=sys.stdout.isatty())


def _line(console: Console, line: str) -> None:
    console.print(line, markup=False, highlight=False, soft_wrap=True)


def _beat(log: ProgressLog, ended: threading.Event) -> None:
    while not ended.wait(max(LEAST, log.beat())):
        pass


def tasks() -> str:
    """The progress of Spark's running jobs in this process, empty if there are none."""
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
"""Width of output that is not a terminal's, unless the variable ``COLUMNS`` is set."""


def table(*columns: str, title: str | None = None) -> FittingTable:
    """A table that loses no text on a narrow terminal."""
    from streamgauge.report.fitting_table import FittingTable

    return FittingTable(*columns, title=title)


def printing() -> Terminal:
    """Standard output with its terminal's width."""
    return Terminal() if sys.stdout.isatty() or os.environ.get("COLUMNS") else Terminal(width=WIDTH)
