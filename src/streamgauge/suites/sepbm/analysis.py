"""From what was due and what was observed to SEP-BM's metrics (Murth et al., sections 2 and 3.2); pure functions.

A notification's time runs from the call of the publication that first allowed it to its making, or its reception; the
averages are over notifications. Publication throughput counts the publications all of whose notifications were told
in an interval, over the interval.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import fmean
from typing import Final, NamedTuple, TypeAlias, TypeVar

from streamgauge.model.terms import Row
from streamgauge.oracle.judging.metrics import percentile
from streamgauge.suites.sepbm import DueRows, PublicationRecord, ReceivedNotification, SepbmRecording

SLOW: Final = ("q02", "q06", "q09", "q14", "q15", "q16", "q17", "q18", "q19", "q20")
"""The ten slow channels (section 4.1 names C14-C17, C19 and C20; the other four are deduced, docs/sepbm.md)."""


class ChangeKind(StrEnum):
    """The kind of change that a notification tells of."""

    NEW = "new"
    RETRACTED = "retracted"


class DueEvent(NamedTuple):
    """A row of a channel's answer that comes or goes, and the publication that first allowed it (``None``: none)."""

    channel: str
    kind: ChangeKind
    row: Row
    publication: int | None


class DeliveredEvent(NamedTuple):
    """A due event that was told; times are ns after its publication was called, ``made`` ``None`` where it is unsaid.

    ``deferred`` when a later publication had been acknowledged before it was told: it came in a later phase.
    ``caused`` says whether the causes that the system named have its publication, ``None`` where it named none.
    """

    event: DueEvent
    made: int | None
    received: int
    deferred: bool
    caused: bool | None


@dataclass(frozen=True, slots=True)
class Analysis:
    """A recording beside what was due: notifications told, missed and surplus (told, but not due or twice).

    ``published`` are in the order in which they took effect, ``began`` and ``ended`` (monotonic ns) the time that it
    took from the first call to the last acknowledgement or notification.
    """

    channels: tuple[str, ...]
    published: tuple[PublicationRecord, ...]
    told: tuple[DeliveredEvent, ...]
    missed: tuple[DueEvent, ...]
    surplus: tuple[DueEvent, ...]
    began: int
    ended: int


class TimeStatistics(NamedTuple):
    """The number, mean, median, 99th percentile and maximum of some notification times, ms."""

    notifications: int
    mean: float
    p50: float
    p99: float
    most: float


class Throughput(NamedTuple):
    """How many publications were completely processed in an interval (s), and a second."""

    complete: int
    seconds: float

    @property
    def rate(self) -> float:
        """Publications a second; 0 where no time passed."""
        return self.complete / self.seconds if self.seconds else 0.0


class NotificationScore(NamedTuple):
    """The metrics of some channels; ``made`` is ``None`` where the system does not say when it made a notification."""

    due: int
    told: int
    missed: int
    surplus: int
    deferred: int
    miscaused: int
    made: TimeStatistics | None
    received: TimeStatistics | None
    throughput: Throughput


def in_effect(published: Iterable[PublicationRecord]) -> tuple[PublicationRecord, ...]:
    """Publications in the order in which they took effect: by the system's numbers, else by acknowledgement."""
    found = tuple(published)
    if all(each.known_as is not None for each in found):
        return tuple(sorted(found, key=lambda each: each.known_as or 0))
    return tuple(sorted(found, key=lambda each: (each.acknowledged, each.called)))


def analyse(due: Iterable[DueRows], recording: SepbmRecording) -> Analysis:
    """Notifications beside what was due, by the publications in the order in which they took effect.

    ``due`` has to be that of this order (``DueRows.publication`` is the number in the sequence).
    """
    published = in_effect(recording.published)
    place = {each.number: at for at, each in enumerate(published)}
    names = set(recording.channels)
    wanted = _wanted([each for each in due if each.channel in names], place)
    told, surplus = _matched(wanted, _heard(recording.heard), published)
    missed = [event for events in wanted.values() for event in events]
    times = [each.acknowledged for each in published] + [each.received for each in recording.heard]
    return Analysis(
        recording.channels,
        published,
        tuple(told),
        tuple(sorted(missed, key=lambda event: place[event.publication or 0])),
        tuple(surplus),
        min((each.called for each in published), default=recording.started),
        max(times, default=recording.started),
    )


_Key: TypeAlias = tuple[str, ChangeKind, Row]
_Part = TypeVar("_Part")


def _wanted(due: Iterable[DueRows], place: dict[int, int]) -> dict[_Key, list[DueEvent]]:
    """The due events of each row, in order of effect, without those that no publication of the recording allows."""
    wanted: dict[_Key, list[DueEvent]] = defaultdict(list)
    for each in sorted((one for one in due if one.publication in place), key=lambda one: place[one.publication]):
        for kind, rows in ((ChangeKind.NEW, each.added), (ChangeKind.RETRACTED, each.removed)):
            for row in rows:
                wanted[each.channel, kind, row].append(DueEvent(each.channel, kind, row, each.publication))
    return wanted


def _heard(heard: Iterable[ReceivedNotification]) -> Iterable[tuple[_Key, ReceivedNotification]]:
    for each in sorted(heard, key=lambda one: one.received):
        for kind, rows in ((ChangeKind.NEW, each.added), (ChangeKind.RETRACTED, each.removed)):
            for row in rows:
                yield (each.channel, kind, row), each


def _matched(
    wanted: dict[_Key, list[DueEvent]],
    heard: Iterable[tuple[_Key, ReceivedNotification]],
    published: Sequence[PublicationRecord],
) -> tuple[list[DeliveredEvent], list[DueEvent]]:
    """Each told row with the first event of it that it may tell of, which is no longer wanted; rows that have none."""
    clock = PublicationTimes(published)
    told: list[DeliveredEvent] = []
    surplus: list[DueEvent] = []
    for key, each in heard:
        events = wanted.get(key, [])
        event = clock.first(events, each)
        if event is None:
            surplus.append(DueEvent(*key, None))
            continue
        events.remove(event)
        told.append(clock.told(event, each))
    return told, surplus


class PublicationTimes:
    """The times of publications by number, and which were there when something was told."""

    def __init__(self, published: Sequence[PublicationRecord]) -> None:
        """``published`` in the order in which they took effect."""
        self._called = {each.number: each.called for each in published}
        self._numbers = {each.known_as: each.number for each in published if each.known_as is not None}
        self._next: dict[int, int] = {}
        earliest: int | None = None
        for each in reversed(published):
            if earliest is not None:
                self._next[each.number] = earliest
            earliest = each.acknowledged if earliest is None else min(earliest, each.acknowledged)

    def first(self, events: Sequence[DueEvent], heard: ReceivedNotification) -> DueEvent | None:
        """The earliest eligible due event of a row, of those that the causes name when they name one."""
        allowed = [each for each in events if self._called[each.publication or 0] <= heard.received]
        named = self._caused(heard)
        return next((each for each in allowed if each.publication in named), allowed[0] if allowed else None)

    def _caused(self, heard: ReceivedNotification) -> Collection[int | None]:
        return {self._numbers.get(cause) for cause in heard.causes}

    def told(self, event: DueEvent, heard: ReceivedNotification) -> DeliveredEvent:
        """How long after its publication's call an event was told."""
        number = event.publication or 0
        called, later = self._called[number], self._next.get(number)
        when = heard.received if heard.made is None else heard.made
        return DeliveredEvent(
            event,
            None if heard.made is None else heard.made - called,
            heard.received - called,
            later is not None and later < when,
            number in self._caused(heard) if heard.causes else None,
        )


def score(
    analysis: Analysis, channels: Collection[str] | None = None, kind: ChangeKind | None = None
) -> NotificationScore:
    """The metrics over some channels (all), and notifications of one kind (both)."""
    names = set(analysis.channels if channels is None else channels)

    def counts(event: DueEvent) -> bool:
        return event.channel in names and (kind is None or event.kind is kind)

    told = [each for each in analysis.told if counts(each.event)]
    missed = [event for event in analysis.missed if counts(event)]
    made = [each.made for each in told if each.made is not None]
    return NotificationScore(
        due=len(told) + len(missed),
        told=len(told),
        missed=len(missed),
        surplus=sum(map(counts, analysis.surplus)),
        deferred=sum(each.deferred for each in told),
        miscaused=sum(each.caused is False for each in told),
        made=times(made) if len(made) == len(told) else None,
        received=times([each.received for each in told]),
        throughput=throughput(analysis, counts),
    )


def by_channel(analysis: Analysis) -> dict[str, NotificationScore]:
    """The metrics of every channel."""
    told = _apart(analysis.told, lambda each: each.event.channel)
    missed, surplus = (_apart(part, lambda event: event.channel) for part in (analysis.missed, analysis.surplus))
    return {
        name: score(replace(analysis, channels=(name,), told=told[name], missed=missed[name], surplus=surplus[name]))
        for name in analysis.channels
    }


def _apart(found: Iterable[_Part], name: Callable[[_Part], str]) -> dict[str, tuple[_Part, ...]]:
    apart: dict[str, list[_Part]] = defaultdict(list)
    for each in found:
        apart[name(each)].append(each)
    return defaultdict(tuple, {key: tuple(parts) for key, parts in apart.items()})


def throughput(
    analysis: Analysis,
    counts: Callable[[DueEvent], bool] = lambda _event: True,
    interval: tuple[int, int] | None = None,
) -> Throughput:
    """Publication throughput in an interval of monotonic ns (the analysis's own): section 2.2.

    A publication is complete when it was acknowledged, and all its notifications that count were told, within it.
    """
    began, ended = interval or (analysis.began, analysis.ended)
    called = {each.number: each.called for each in analysis.published}
    complete = {each.number for each in analysis.published if began <= each.called and each.acknowledged <= ended}
    complete -= {event.publication for event in analysis.missed if event.publication is not None and counts(event)}
    for each in analysis.told:
        number = each.event.publication
        if number is not None and counts(each.event) and called[number] + _taken(each) > ended:
            complete.discard(number)
    return Throughput(len(complete), (ended - began) / 1e9)


def _taken(told: DeliveredEvent) -> int:
    return told.received if told.made is None else told.made


def times(found: Collection[int]) -> TimeStatistics | None:
    """Statistics of notification times in ns; ``None`` without any."""
    if not found:
        return None
    ms = [each / 1e6 for each in found]
    return TimeStatistics(len(ms), fmean(ms), percentile(ms, 50) or 0.0, percentile(ms, 99) or 0.0, max(ms))
