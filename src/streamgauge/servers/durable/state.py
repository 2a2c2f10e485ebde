"""The state of a session in a folder: items that windows may need, positions of sources, numbered answers."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import Semantics
from streamgauge.servers.durable.journal import Change, NumberedLine, Segment, SessionJournal
from streamgauge.servers.durable.needs import Need, StreamNeed
from streamgauge.servers.durable.segments import (
    ItemColumns,
    KeptItem,
    SegmentExtent,
    extent_of,
    kept_items,
)
from streamgauge.servers.sealed.soundness import JournalError

LOOK: Final = 16
"""Segments are checked for removal each time 1/LOOK of the stored items were added."""


class SessionState:
    """The state in a folder, created if missing. Not thread-safe.

    Items are numbered from 0 in order of arrival; ``next`` is the next number. JournalError for a damaged or foreign
    folder, NotWrittenError if the disk refuses a change.
    """

    def __init__(self, folder: Path) -> None:
        self._journal = SessionJournal(folder)
        self._needs: dict[Hashable, Need] = {}
        self._needs_of: dict[str, Hashable] = {}
        self._extents = self._journal.extents()
        self._greatest = max((extent.greatest for extent in self._extents if extent.greatest is not None), default=None)
        self.next: int = self._journal.records("session").get("next", 0)
        self.kept_items = sum(extent.end - extent.number for extent in self._extents)
        self._unlooked = 0

    @property
    def size(self) -> int:
        """Size on disk in bytes."""
        return self._journal.size

    def records(self, kind: str) -> dict[str, Any]:
        """The records of a kind by their names."""
        return self._journal.records(kind)

    def answers(self, query: str) -> Sequence[NumberedLine]:
        """The stored answers of a query."""
        return self._journal.answers(query)

    def history(self) -> Iterator[tuple[int, KeptItem]]:
        """The stored items, each with its number (a batch with that of its first element)."""
        return kept_items(self._journal.segments())

    def latest(self, streams: Sequence[str], first: int, last: int) -> int | None:
        """The latest known time (ms) of an element of these streams among the items ``first`` to ``last``."""
        extents = [extent for extent in self._extents if first <= extent.number and extent.end <= last + 1]
        times = [extent.times[stream] for extent in extents for stream in streams if stream in extent.times]
        return max(times, default=None)

    def follow(self, name: str, query: ContinuousQuery, semantics: Semantics, start: int = 0) -> None:
        """Keep the items that a query may need, given that it began with item ``start``."""
        need = Need(query, semantics)
        seen = [extent for extent in self._extents if extent.number >= start]
        # Queries that need the same of the same items share a need: a hundred alerts over one window cost as much as
        # one.
        self._needs_of[name] = key = (need.key, start if len(seen) < len(self._extents) else 0)
        if key not in self._needs:
            self._needs[key] = need
            for extent in seen:
                need.write(extent)

    def forget(self, name: str) -> None:
        """Stop keeping items for a query."""
        key = self._needs_of.pop(name, None)
        if key not in self._needs_of.values():
            self._needs.pop(key, None)

    def looks(self, count: int) -> bool:
        """Whether writing this many more items triggers the removal of segments."""
        return (self._unlooked + count) * LOOK >= self.kept_items

    def write(self, change: Change, items: ItemColumns, processed: Mapping[str, int]) -> None:
        """Commit a change together with new items; segments that no window can need are dropped.

        ``processed`` are the last items that queries were answered up to.
        """
        count = len(items.times)
        looks = self.looks(count)
        # The caller writes the same change again after NotWrittenError, when what is dropped may be more.
        before = [*change.dropped], [*change.segments]
        extents = self._dropped(change) if looks else self._extents
        came: SegmentExtent | None = None
        if count:
            came = extent_of(self.next, items, self._greatest)
            change.segments.append(Segment(came, items.encode()))
            change.records["session", "next"] = came.end
        try:
            self._journal.write(change)
        except JournalError:
            change.dropped, change.segments = before
            raise
        self._unlooked += count
        if looks:
            # Only after the commit: until then the disk has the segments of before.
            self._extents, self._unlooked = extents, 0
            self.kept_items = sum(extent.end - extent.number for extent in extents)
        if came is not None:
            self._add(came)
            self.next, self._greatest = came.end, came.greatest
        self._settle(processed)

    def close(self) -> None:
        """Close the journal's files."""
        self._journal.close()

    def _settle(self, processed: Mapping[str, int]) -> None:
        """Report to each need the last item up to which all its queries were answered."""
        least = dict.fromkeys(self._needs, self.next)
        for name, key in self._needs_of.items():
            least[key] = min(least[key], processed.get(name, -1))
        for key, number in least.items():
            self._needs[key].settle(number)

    def _add(self, extent: SegmentExtent) -> None:
        self._extents.append(extent)
        self.kept_items += extent.end - extent.number
        for need in self._needs.values():
            need.write(extent)

    def _dropped(self, change: Change) -> list[SegmentExtent]:
        """The remaining segments; of removed ones only the times remain, merged with those of their neighbours."""
        needs = {name: StreamNeed(name, self._needs.values()) for name in self._streams()}
        behind = dict.fromkeys(needs, 0)
        kept: list[SegmentExtent] = []
        answered = min((need.processed for need in self._needs.values()), default=self.next)
        # From the newest back, because ``behind`` counts the triples of later segments.
        for extent in reversed(self._extents):
            # An item that some query has not answered is needed, whatever its time.
            if extent.end > answered + 1 or any(
                needs[stream].needs(extent, behind[stream]) for stream in extent.triples
            ):
                kept.append(extent)
            else:
                self._let_go(extent, kept, change)
            for stream, count in extent.triples.items():
                behind[stream] += count
        kept.reverse()
        for at, extent in enumerate(kept):
            if extent.changed:
                change.segments.append(Segment(extent))
                kept[at] = replace(extent, changed=False)
        return kept

    def _streams(self) -> set[str]:
        return {stream for extent in self._extents for stream in extent.triples}

    def _let_go(self, extent: SegmentExtent, kept: list[SegmentExtent], change: Change) -> None:
        """Remove a segment; its times are merged into the following rest, or become one."""
        later = kept[-1] if kept and kept[-1].is_rest else None
        if later is None and extent.is_rest:
            kept.append(extent)
            return
        change.dropped.append(extent.number)
        if later is None:
            kept.append(replace(extent, end=extent.number + 1, triples={}, latest=None, timely=None, changed=True))
            return
        advances, times = _latest(extent.advances, later.advances), _latest(extent.times, later.times)
        # Usually later times are already the latest; then the rest need not be written again.
        if (advances, times) != (later.advances, later.times):
            change.dropped.append(later.number)
            kept[-1] = replace(later, advances=advances, times=times, changed=True)


def _latest(times: Mapping[str, int], later: Mapping[str, int]) -> dict[str, int]:
    """The later of both times for each stream."""
    return {stream: max(time, times.get(stream, time)) for stream, time in {**times, **later}.items()}
