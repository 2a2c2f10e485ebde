"""Entries that several logs share, as one row of the journal: different queries may change in the same way.

Two hundred channels whose answers gain the same rows would make the journal write these two hundred times. A shared row
has the ``log`` 0 and a number of its own; its body is the entry with the logs that have it, as runs of logs in which it
has the same number.

A worked example: logs 3, 4 and 5 have the entry under number 7, log 9 under 2. Its row is ``(0, 1, "[entry,
[[3,5,7],[9,9,2]]]")``. It leaves the journal once 3, 4 and 5 are settled up to 7 or more, and 9 up to 2.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from sys import maxsize
from typing import Final, TypeAlias

import msgspec

from streamgauge.servers.broker.contract import AnswerEntry, UnacknowledgedEntry

GROUPS: Final = 0
"""The log number of shared rows; logs of queries count from 1."""

Runs: TypeAlias = list[tuple[int, int, int]]
"""(first log, last log, number), ascending."""

_body: Final = msgspec.json.Decoder(tuple[AnswerEntry, Runs]).decode


def grouped(entries: Iterable[UnacknowledgedEntry]) -> Iterator[tuple[AnswerEntry, list[tuple[int, int]]]]:
    """The distinct entries, each with (log, number) of all logs that have it."""
    members: dict[AnswerEntry, list[tuple[int, int]]] = defaultdict(list)
    for entry in entries:
        members[entry.entry].append((entry.log, entry.number))
    yield from members.items()


def runs_of(members: Iterable[tuple[int, int]]) -> Runs:
    """(log, number) pairs as runs."""
    runs: Runs = []
    # Sorted by log, so that neighbours with equal numbers, the usual case for logs that began together, become one run.
    for log, number in sorted(members):
        if runs and runs[-1][1:] == (log - 1, number):
            runs[-1] = (runs[-1][0], log, number)
        else:
            runs.append((log, log, number))
    return runs


def write_group(entry: AnswerEntry, runs: Runs) -> str:
    """The body of a shared row."""
    return msgspec.json.encode((entry, runs)).decode()


def read_group(body: str) -> tuple[AnswerEntry, Runs]:
    """The entry and the runs in a row's body."""
    return _body(body)


def members_of(runs: Runs) -> Iterator[tuple[int, int]]:
    """The (log, number) pairs of runs."""
    for first, last, number in runs:
        for log in range(first, last + 1):
            yield log, number


class _Group:
    """A shared row with the number of logs that still need it."""

    __slots__ = ("needed", "number")

    def __init__(self, number: int) -> None:
        self.number, self.needed = number, 0


class GroupIndex:
    """The shared rows that each log needs, so that a row is deleted when the last log has settled it."""

    def __init__(self) -> None:
        self.newest = 0
        self._rows: dict[int, deque[tuple[int, _Group]]] = {}

    def add(self, number: int, runs: Runs, logs: Sequence[int] | None = None) -> None:
        """Add a shared row; only ``logs`` count, if given, since others may have been deleted."""
        group, wanted = _Group(number), None if logs is None else frozenset(logs)
        self.newest = max(self.newest, number)
        for log, place in members_of(runs):
            if wanted is None or log in wanted:
                self._rows.setdefault(log, deque()).append((place, group))
                group.needed += 1

    def settle(self, log: int, number: int = maxsize) -> list[int]:
        """Settle a log up to a number; returns the shared rows that no log needs any more."""
        rows, gone = self._rows.get(log), list[int]()
        # Rows of a log come in the order of its numbers, so the settled ones are at the left end.
        while rows and rows[0][0] <= number:
            _, group = rows.popleft()
            group.needed -= 1
            if not group.needed:
                gone.append(group.number)
        # Logs are created and deleted all the time; empty deques would remain.
        if rows is not None and not rows:
            del self._rows[log]
        return gone
