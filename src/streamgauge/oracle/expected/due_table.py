"""Due reports in columns of numbers, from which each is made when it is read: a twentieth of their size as objects.

``portions`` cuts a run's reports into tables that are judged one after the other, so their number is unbounded.
"""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from itertools import chain, groupby, islice
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeAlias, overload

import numpy as np

from streamgauge.model.report import DueReport, View

Numbers: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.int64]]"

PORTION: Final = 50_000
"""Instants whose reports are judged together: their tasks and verdicts take some 50 MiB of the driver."""

_VIEW = tuple(field.name for field in fields(View))
_FIRST, _LAST = _VIEW.index("first"), _VIEW.index("last")
_numbers = attrgetter(*_VIEW)


class DueTable(Sequence[DueReport]):
    """Reports, ascending in time: 8 bytes per report, and 48 per window of it."""

    def __init__(self, rows: "np.ndarray[tuple[int, int], np.dtype[np.int64]]") -> None:
        """``rows`` has a row per report: its instant, then the fields of each view."""
        self._rows = rows

    @classmethod
    def of(cls, reports: Iterable[DueReport], windows: int) -> "DueTable":
        """The table of reports over that many windows."""
        numbers = array("q")
        for report in reports:
            numbers.append(report.instant)
            for view in report.views:
                numbers.extend(_numbers(view))
        return cls(np.array(numbers, np.int64).reshape(-1, 1 + windows * len(_VIEW)))

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, place: int) -> DueReport: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[DueReport, ...]: ...

    def __getitem__(self, place: int | slice) -> DueReport | tuple[DueReport, ...]:
        """A report, or a tuple of them."""
        rows = self._rows[place].tolist()
        return tuple(map(_report, rows)) if isinstance(place, slice) else _report(rows)

    def take(self, places: "Sequence[int] | Numbers") -> "DueTable":
        """The reports at these places."""
        return DueTable(self._rows[np.asarray(places, np.int64)])

    def after(self, before: "DueTable") -> "DueTable":
        """The reports with others before them."""
        return DueTable(np.concatenate([before._rows, self._rows]))

    @property
    def instants(self) -> Sequence[int]:
        """The instant (ms) of each report."""
        return integers(self._rows[:, 0])

    @property
    def firsts(self) -> Sequence[int]:
        """The earliest time (ms) that each report may contain."""
        return integers(self._rows[:, 1 + _FIRST :: len(_VIEW)].min(axis=1))

    @property
    def lasts(self) -> Sequence[int]:
        """The latest time (ms) that each report may contain."""
        return integers(self._rows[:, 1 + _LAST :: len(_VIEW)].max(axis=1))


class DuePortion(NamedTuple):
    """Some of a run's reports, in order: those of ``due`` but the first ``skip``, which came with earlier portions.

    Answers may be differences to skipped ones, and contents unchanged since then. ``final`` if no portion follows.
    """

    due: DueTable
    skip: int
    final: bool

    @property
    def own(self) -> DueTable:
        """The reports without those that are skipped."""
        return self.due.take(np.arange(self.skip, len(self.due)))


def portions(reports: Iterable[DueReport], windows: int) -> Iterator[DuePortion]:
    """Reports over that many windows in portions of PORTION; those of one instant stay together. At least one."""
    together = (tuple(group) for _, group in groupby(reports, key=attrgetter("instant")))
    before, own = DueTable.of((), windows), _next(together, windows)
    while following := _next(together, windows):
        yield DuePortion(own.after(before), len(before), final=False)
        # The last report only: differences and changes of content refer to the report before.
        before, own = own.take([len(own) - 1]), following
    yield DuePortion(own.after(before), len(before), final=True)


def _next(together: Iterator[tuple[DueReport, ...]], windows: int) -> DueTable:
    return DueTable.of(chain.from_iterable(islice(together, PORTION)), windows)


def integers(values: Any) -> Sequence[int]:
    """The numbers of an array as Python's integers when they are read, without a copy."""
    return memoryview(values)


def _report(numbers: Sequence[int]) -> DueReport:
    instant, *views = numbers
    return DueReport(instant, tuple(View(*views[at : at + len(_VIEW)]) for at in range(0, len(views), len(_VIEW))))
