"""From due and observed notifications to SEP-BM's metrics (Murth et al., sections 2 and 3.2); pure functions.

A notification's time runs from the call of the publication that first allowed it to its creation, or its reception;
averages are over notifications. Publication throughput is the number of publications per second whose notifications
were all delivered within an interval.
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
    """The kind of change that a notification reports."""

    NEW = "new"
    RETRACTED = "retracted"


class DueEvent(NamedTuple):
    """A row that enters or leaves a channel's answer, and the publication that first allowed it (``None``: none)."""

    channel: str
    kind: ChangeKind
    row: Row
    publication: int | None


class DeliveredEvent(NamedTuple):
    """A due event of which subscribers were notified; times are ns after the call of its publication.

    ``notified`` is ``None`` if the system does not report when it made the notification. ``deferred``: a later
    publication had been acknowledged before. ``caused``: whether the named causes include its publication, ``None`` if
    the system names none.
    """

    event: DueEvent
    notified: int | None
    received: int
    deferred: bool
    caused: bool | None


@dataclass(frozen=True, slots=True)
class Analysis:
    """A recording compared with its due events; ``surplus`` are notifications that are not due, or duplicates.

    ``published`` are in the order in which they took effect; ``began`` and ``ended`` (monotonic ns) span from the first
    call to the last acknowledgement or notification.
    """

    channels: tuple[str, ...]
    published: tuple[PublicationRecord, ...]
    delivered: tuple[DeliveredEvent, ...]
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
    """The number of publications completely processed in an interval (s)."""

    complete: int
    seconds: float

    @property
    def rate(self) -> float:
        """Publications per second; 0 if no time passed."""
        return self.complete / self.seconds if self.seconds else 0.0


class NotificationScore(NamedTuple):
    """The metrics of some channels; ``notified`` is ``None`` if the system does not report when it notified."""

    due: int
    delivered: int
    missed: int
    surplus: int
    deferred: int
    miscaused: int
    notified: TimeStatistics | None
    received: TimeStatistics | None
    throughput: Throughput


def in_effect(published: Iterable[PublicationRecord]) -> tuple[PublicationRecord, ...]:
    """Publications in the order in which they took effect: by the system's numbers, else by acknowledgement."""
    records = tuple(published)
    if all(record.known_as is not None for record in records):
        return tuple(sorted(records, key=lambda record: record.known_as or 0))
    # Without numbers, a publication took effect by its acknowledgement at the latest.
    return tuple(sorted(records, key=lambda record: (record.acknowledged, record.called)))


def analyse(due: Iterable[DueRows], recording: SepbmRecording) -> Analysis:
    """Compare notifications with due events, for the order in which publications took effect.

    ``due`` must be computed for this order (``DueRows.publication`` is the number in the sequence).
    """
    published = in_effect(recording.published)
    place = {record.number: at for at, record in enumerate(published)}
    names = set(recording.channels)
    wanted = _wanted([change for change in due if change.channel in names], place)
    delivered, surplus = _matched(wanted, _heard(recording.heard), published)
    missed = [event for events in wanted.values() for event in events]
    times = [record.acknowledged for record in published] + [heard_one.received for heard_one in recording.heard]
    return Analysis(
        recording.channels,
        published,
        tuple(delivered),
        tuple(sorted(missed, key=lambda event: place[event.publication or 0])),
        tuple(surplus),
        min((record.called for record in published), default=recording.started),
        max(times, default=recording.started),
    )


_Key: TypeAlias = tuple[str, ChangeKind, Row]
_Part = TypeVar("_Part")


def _wanted(due: Iterable[DueRows], place: dict[int, int]) -> dict[_Key, list[DueEvent]]:
    """The due events of each row in order of effect, without those that no recorded publication allows."""
    wanted: dict[_Key, list[DueEvent]] = defaultdict(list)
    for one in sorted((one for one in due if one.publication in place), key=lambda one: place[one.publication]):
        for kind, rows in ((ChangeKind.NEW, one.added), (ChangeKind.RETRACTED, one.removed)):
            for row in rows:
                wanted[one.channel, kind, row].append(DueEvent(one.channel, kind, row, one.publication))
    return wanted


def _heard(heard: Iterable[ReceivedNotification]) -> Iterable[tuple[_Key, ReceivedNotification]]:
    for notification in sorted(heard, key=lambda one: one.received):
        for kind, rows in ((ChangeKind.NEW, notification.added), (ChangeKind.RETRACTED, notification.removed)):
            for row in rows:
                yield (notification.channel, kind, row), notification


def _matched(
    wanted: dict[_Key, list[DueEvent]],
    heard: Iterable[tuple[_Key, ReceivedNotification]],
    published: Sequence[PublicationRecord],
) -> tuple[list[DeliveredEvent], list[DueEvent]]:
    """Match each received row with that row's first open event; rows without one are surplus."""
    clock = PublicationTimes(published)
    delivered: list[DeliveredEvent] = []
    surplus: list[DueEvent] = []
    for key, notification in heard:
        events = wanted.get(key, [])
        event = clock.first(events, notification)
        if event is None:
            surplus.append(DueEvent(*key, None))
            continue
        # A row may enter, leave and enter again: each notification uses up one event.
        events.remove(event)
        delivered.append(clock.delivered(event, notification))
    return delivered, surplus


class PublicationTimes:
    """The times of publications by number, to assign notifications to them."""

    def __init__(self, published: Sequence[PublicationRecord]) -> None:
        """``published`` in the order in which they took effect."""
        self._called = {record.number: record.called for record in published}
        self._numbers = {record.known_as: record.number for record in published if record.known_as is not None}
        self._next: dict[int, int] = {}
        # From the last to the first, ``earliest`` is the first acknowledgement of any later publication.
        earliest: int | None = None
        for record in reversed(published):
            if earliest is not None:
                self._next[record.number] = earliest
            earliest = record.acknowledged if earliest is None else min(earliest, record.acknowledged)

    def first(self, events: Sequence[DueEvent], heard: ReceivedNotification) -> DueEvent | None:
        """The first event of a row that the notification may mean: of its causes, else called before it."""
        # A notification cannot mean a publication that had not been called: such a row is surplus, not early.
        allowed = [event for event in events if self._called[event.publication or 0] <= heard.received]
        # Systems that name no causes have an empty set here, and get the first event that is open.
        named = self._caused(heard)
        return next((event for event in allowed if event.publication in named), allowed[0] if allowed else None)

    def _caused(self, heard: ReceivedNotification) -> Collection[int | None]:
        return {self._numbers.get(cause) for cause in heard.causes}

    def delivered(self, event: DueEvent, heard: ReceivedNotification) -> DeliveredEvent:
        """The event as notified, with its times after the call of its publication."""
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
    """The metrics over some channels (default: all) and one kind of notifications (default: both)."""
    names = set(analysis.channels if channels is None else channels)

    def counts(event: DueEvent) -> bool:
        return event.channel in names and (kind is None or event.kind is kind)

    delivered = [event for event in analysis.delivered if counts(event.event)]
    missed = [event for event in analysis.missed if counts(event)]
    evaluated = [event.notified for event in delivered if event.notified is not None]
    return NotificationScore(
        due=len(delivered) + len(missed),
        delivered=len(delivered),
        missed=len(missed),
        surplus=sum(map(counts, analysis.surplus)),
        deferred=sum(event.deferred for event in delivered),
        miscaused=sum(event.caused is False for event in delivered),
        # Statistics over a part of the notifications would be compared with those of systems that name all.
        notified=times(evaluated) if len(evaluated) == len(delivered) else None,
        received=times([event.received for event in delivered]),
        throughput=throughput(analysis, counts),
    )


def by_channel(analysis: Analysis) -> dict[str, NotificationScore]:
    """The metrics of every channel."""
    # Divided once by channel: each of hundreds of channels would otherwise pass over all events.
    delivered = _apart(analysis.delivered, lambda delivered_event: delivered_event.event.channel)
    missed, surplus = (_apart(part, lambda event: event.channel) for part in (analysis.missed, analysis.surplus))
    return {
        name: score(
            replace(analysis, channels=(name,), delivered=delivered[name], missed=missed[name], surplus=surplus[name])
        )
        for name in analysis.channels
    }


def _apart(parts: Iterable[_Part], name: Callable[[_Part], str]) -> dict[str, tuple[_Part, ...]]:
    apart: dict[str, list[_Part]] = defaultdict(list)
    for part in parts:
        apart[name(part)].append(part)
    return defaultdict(tuple, {key: tuple(parts) for key, parts in apart.items()})


def throughput(
    analysis: Analysis,
    counts: Callable[[DueEvent], bool] = lambda _event: True,
    interval: tuple[int, int] | None = None,
) -> Throughput:
    """Publication throughput in an interval of monotonic ns (default: the analysis's): section 2.2.

    A publication is complete if it was acknowledged and all its counted notifications were delivered within the
    interval.
    """
    began, ended = interval or (analysis.began, analysis.ended)
    called = {record.number: record.called for record in analysis.published}
    complete = {
        record.number for record in analysis.published if began <= record.called and record.acknowledged <= ended
    }
    complete -= {event.publication for event in analysis.missed if event.publication is not None and counts(event)}
    for delivered_event in analysis.delivered:
        number = delivered_event.event.publication
        if number is not None and counts(delivered_event.event) and called[number] + _taken(delivered_event) > ended:
            complete.discard(number)
    return Throughput(len(complete), (ended - began) / 1e9)


def _taken(event: DeliveredEvent) -> int:
    return event.received if event.notified is None else event.notified


def times(durations: Collection[int]) -> TimeStatistics | None:
    """Statistics of notification times in ns; ``None`` without any."""
    if not durations:
        return None
    ms = [duration / 1e6 for duration in durations]
    return TimeStatistics(len(ms), fmean(ms), percentile(ms, 50) or 0.0, percentile(ms, 99) or 0.0, max(ms))
