"""The state of a session in its folder: items that windows may need, positions of sources, answers by number."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from streamgauge.formats.lines import Advance
from streamgauge.model.element import StreamElement
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import Semantics
from streamgauge.servers.durable.journal import Change, JournalItem, NumberedLine, Segment, SessionJournal
from streamgauge.servers.durable.needs import Need, SegmentExtent, StreamNeed
from streamgauge.servers.sealed.soundness import JournalError

LOOK: Final = 16
"""A look for segments that can go is made after every 1/LOOK of the items that are kept."""


class SessionState:
    """The state in a folder, made when it is not there; one thread at a time.

    Items are numbered from 0 in the order in which they were taken; ``next`` is the number of the next one.
    JournalError for a folder that is damaged or another's, NotWrittenError when the disk does not take a change.
    """

    def __init__(self, folder: Path) -> None:
        self._journal = SessionJournal(folder)
        self._needs: dict[str, Need] = {}
        self._greatest: int | None = None
        self._extents = [self._extent(segment) for segment in self._journal.segments()]
        self.next: int = self._journal.records("session").get("next", 0)
        self.kept_items = sum(extent.end - extent.number for extent in self._extents)
        self._unlooked = 0

    @property
    def size(self) -> int:
        """Bytes on the disk."""
        return self._journal.size

    def records(self, kind: str) -> dict[str, Any]:
        """The records of a kind by their names."""
        return self._journal.records(kind)

    def answers(self, query: str) -> Sequence[NumberedLine]:
        """The answers of a query that are kept."""
        return self._journal.answers(query)

    def history(self) -> Iterator[tuple[int, JournalItem]]:
        """The items that may still be needed, with their numbers."""
        for segment in self._journal.segments():
            yield from segment.numbered()

    def follow(self, name: str, query: ContinuousQuery, semantics: Semantics, processed: int) -> None:
        """Keep what a query may need, which was answered up to the item ``processed``."""
        self._needs[name] = need = Need(query, semantics)
        for extent in self._extents:
            need.write(extent)
        need.settle(processed)

    def forget(self, name: str) -> None:
        """Nothing needs to be kept for a query any more."""
        self._needs.pop(name, None)

    def looks(self, count: int) -> bool:
        """Whether segments are dropped with the next so many items."""
        return (self._unlooked + count) * LOOK >= self.kept_items

    def write(self, change: Change, items: Sequence[JournalItem], processed: Mapping[str, int]) -> None:
        """Make a change durable with the items that came; what no window can hold any more is dropped.

        ``processed`` are the last items that queries were answered up to.
        """
        looks = self.looks(len(items))
        before = [*change.dropped], [*change.segments]
        extents = self._dropped(change) if looks else self._extents
        if items:
            change.segments.append(Segment(self.next, items))
            change.records["session", "next"] = self.next + len(items)
        try:
            self._journal.write(change)
        except JournalError:
            change.dropped, change.segments = before
            raise
        self._unlooked += len(items)
        if looks:
            self._extents, self._unlooked = extents, 0
            self.kept_items = sum(extent.end - extent.number for extent in extents)
        if items:
            self._add(self._extent(Segment(self.next, items)))
            self.next += len(items)
        for name, number in processed.items():
            if name in self._needs:
                self._needs[name].settle(number)

    def close(self) -> None:
        """Close the files."""
        self._journal.close()

    def _add(self, extent: SegmentExtent) -> None:
        self._extents.append(extent)
        self.kept_items += extent.end - extent.number
        for need in self._needs.values():
            need.write(extent)

    def _dropped(self, change: Change) -> list[SegmentExtent]:
        """The segments that stay. Of those that go their times stay, joined to those of their neighbours."""
        needs = {name: StreamNeed(name, self._needs.values()) for name in self._streams()}
        behind = dict.fromkeys(needs, 0)
        kept: list[SegmentExtent] = []
        answered = min((need.processed for need in self._needs.values()), default=self.next)
        for extent in reversed(self._extents):
            if extent.end > answered + 1 or any(
                needs[stream].needs(extent, behind[stream]) for stream in extent.triples
            ):
                kept.append(extent)
            else:
                self._let_go(extent, kept, change)
            for stream, count in extent.triples.items():
                behind[stream] += count
        kept.reverse()
        for extent in kept:
            if extent.changed:
                change.segments.append(Segment(extent.number, _rest(extent), past=True))
        return [replace(extent, changed=False) for extent in kept]

    def _streams(self) -> set[str]:
        return {stream for extent in self._extents for stream in extent.triples}

    def _let_go(self, extent: SegmentExtent, kept: list[SegmentExtent], change: Change) -> None:
        """Drop a segment but for its times, which go to the rest that follows or become one."""
        later = kept[-1] if kept and kept[-1].is_rest else None
        if later is None and extent.is_rest:
            kept.append(extent)
            return
        change.dropped.append(extent.number)
        if later is None:
            kept.append(replace(extent, triples={}, latest=None, timely=None, changed=True))
            return
        advances, times = _latest(extent.advances, later.advances), _latest(extent.times, later.times)
        if (advances, times) != (later.advances, later.times):
            change.dropped.append(later.number)
            kept[-1] = replace(later, advances=advances, times=times, changed=True)

    def _extent(self, segment: Segment) -> SegmentExtent:
        """The extent of a segment that comes behind the others."""
        end = segment.number + (1 if segment.past else len(segment.items))
        extent = SegmentExtent(segment.number, end, None, None, {}, {}, {})
        for stream, item in segment.items:
            greatest = item.time if self._greatest is None else max(self._greatest, item.time)
            timely, self._greatest = greatest == item.time, greatest
            if isinstance(item, StreamElement):
                extent.times[stream] = max(item.time, extent.times.get(stream, item.time))
                if item.added:
                    extent.latest = item.time if extent.latest is None else max(extent.latest, item.time)
                    extent.timely = item.time if timely else extent.timely
                    extent.triples.setdefault(stream, 0)
                    extent.triples[stream] += len(item.added) if timely else 0
            else:
                extent.advances[stream] = max(item.time, extent.advances.get(stream, item.time))
                self._greatest = max(greatest, item.time + 1)
        return extent


def _latest(times: Mapping[str, int], later: Mapping[str, int]) -> dict[str, int]:
    """The latest times by stream."""
    return {stream: max(time, times.get(stream, time)) for stream, time in {**times, **later}.items()}


def _rest(extent: SegmentExtent) -> list[JournalItem]:
    """The times of a segment as items: elements without triples, and advances."""
    times = sorted(extent.times.items(), key=lambda stream_time: stream_time[1])  # or time would go back
    elements = [(stream, StreamElement(stream, time, extent.number, ())) for stream, time in times]
    return [*elements, *((stream, Advance(time)) for stream, time in extent.advances.items())]
