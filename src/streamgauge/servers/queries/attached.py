"""Attached sources: each feeds a stream of the service's queries."""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from logging import ERROR, INFO, getLogger
from threading import Condition, Event, RLock, Thread
from typing import Any, TypeAlias

from streamgauge.formats.batches import Taken, count_of
from streamgauge.formats.streams import Reading
from streamgauge.model.logs import fields, without_secrets
from streamgauge.servers.durable.gaps import UNREAD, Gap
from streamgauge.servers.queries.catalogue import ConflictError
from streamgauge.servers.queries.durability import NotDurableError
from streamgauge.servers.queries.item_log import first_time, latest_time
from streamgauge.servers.queries.limits import QueriesBusyError
from streamgauge.servers.queries.registry import Queries
from streamgauge.servers.queries.requests import in_steps
from streamgauge.servers.sealed.soundness import NotWrittenError
from streamgauge.sources import Source, SourceError, open_source
from streamgauge.sources.contract import Resumable, parse_address

_LOG = getLogger(__name__)
# Elements that wait between the two threads: the reader decodes the next ones while these are published.
BATCH = 500
AGAIN_S = 5.0
"""Seconds after which a failed source is attached again."""

WAIT_S = 0.05
LEAVE_S = 1.0
"""Maximum seconds until all sources have ended; a service ends within 5."""


PlacedItem: TypeAlias = tuple[Taken, object]
"""An item and the place after it, ``None`` if the source has no places."""


class AttachError(PermissionError):
    """A source outside of the allowed URLs."""


class AttachedSources:
    """The attached sources by stream. Thread-safe.

    ``allowed`` lists URLs, and a source must be one of these or lie below one; or it is a function that raises the
    reason why a URL may not be attached.
    """

    def __init__(
        self,
        queries: Queries,
        allowed: Sequence[str] | Callable[[str], None],
        open_: Callable[[str, Reading], Source] = open_source,
    ) -> None:
        self._queries, self._open = queries, open_
        self._check = allowed if callable(allowed) else partial(_check_below, tuple(allowed))
        self._lock = RLock()
        self._feeding: dict[str, _Feeding] = {}
        self._away: dict[str, dict[str, object]] = {}
        self._kept: dict[str, str] = {}
        self._again: dict[str, float] = {}

    def attach(self, stream: str, url: str) -> None:
        """Feed a stream from a source. AttachError, ConflictError, SourceError."""
        self._check(url)
        if self._queries.journal is not None and (shown := parse_address(url).text) != url:
            # Without it the source could not be attached again after a restart, with it the disk would have it.
            raise SourceError(
                f"{shown}: the state of this service keeps addresses, but no secrets: write the secret into a file of "
                "the service's machine, and name that by password_file= or token_file="
            )
        with self._lock:
            running = self._feeding.get(stream)
            if running is not None and not running.ended:
                raise ConflictError(f"<{stream}> is fed from {running.url}: detach it first")
            self._note(stream, _record(url))  # before the places of its items
            try:
                self._feed(stream, url)
            except BaseException:
                self._note(stream, None)
                raise

    def _note(self, stream: str, record: Mapping[str, Any] | None) -> None:
        if self._queries.journal is not None:
            self._queries.journal.note("source", stream, record)

    def keep(self, sources: Sequence[tuple[str, str]]) -> None:
        """Feed streams permanently from (stream, URL); ``look`` attaches failed sources again. SourceError.

        A source resumes at its position when the service ended; one that is no longer named is forgotten.
        """
        journal = self._queries.journal
        records = {} if journal is None else journal.state.records("source")
        for stream in [name for name, record in records.items() if record.get("kept")]:
            if stream not in dict(sources):
                self._note(stream, None)
        for stream, url in sources:
            with self._lock:
                running = self._feeding.get(stream)
                # The configuration names another source for this stream than before: that one wins.
                if running is not None and running.address != url:
                    self.detach(stream)
                self._kept[stream] = url
                if stream not in self._feeding:
                    self._away.pop(stream, None)
                    record = records.get(stream)
                    # A password may be another one than before.
                    same = record is not None and without_secrets(record["url"]) == parse_address(url).text
                    self._feed(stream, url, record if same else None)

    def look(self) -> None:
        """Attach failed permanent sources again, at their last positions; call it periodically."""
        now = time.monotonic()
        for stream, url in self._kept.items():
            with self._lock:
                running = self._feeding.get(stream)
                # A source that ended without a fault, such as a file that was read, stays ended.
                if running is None or not running.ended or not running.fault or now < self._again.get(stream, 0.0):
                    continue
                # Before the attempt, so that one that fails waits as well.
                self._again[stream] = now + AGAIN_S
                try:
                    self._feed(stream, url, running.noted)
                except SourceError as error:
                    running.fault = str(error)

    def restore(self) -> None:
        """Attach clients' sources from the journal at their positions; ``status`` reports those that fail."""
        journal = self._queries.journal
        for stream, record in journal.state.records("source").items() if journal is not None else ():
            if record.get("kept"):
                continue
            try:
                with self._lock:
                    self._feed(stream, record["url"], record)
            except SourceError as error:
                _LOG.error("the source cannot be attached again: %s", error, extra=fields(stream=stream))
                # Restoring goes on with the other sources: one that is down must not keep the service from starting.
                self._away[stream] = {"source": parse_address(record["url"]).text, "ended": True, "fault": str(error)}

    def _feed(self, stream: str, url: str, record: Mapping[str, Any] | None = None) -> None:
        reading = Reading(stream=stream, lateness=_ANY_LATENESS)
        position = None if record is None else record["position"]
        source = open_source(url, reading, after=position) if position is not None else self._open(url, reading)
        if self._queries.journal is not None and isinstance(source, Resumable):
            # From here on nothing is confirmed to the transport before ``settle``: it would be lost if the process
            # died while the element is not in the journal.
            source.hold()
        noted = _record(url, kept=stream in self._kept) | {key: (record or {}).get(key) for key in ("position", "time")}
        self._feeding[stream] = _Feeding(self._queries, stream, url, source, record, noted)

    def pause(self, stream: str) -> None:
        """Stop reading the source of a stream until ``resume``; ConflictError if no source is attached."""
        self._of(stream).paused.set()

    def resume(self, stream: str) -> None:
        """Continue reading the source of a stream; ConflictError if no source is attached."""
        self._of(stream).paused.clear()

    def _of(self, stream: str) -> "_Feeding":
        with self._lock:
            if stream not in self._feeding:
                raise ConflictError(f"<{stream}> has no source attached")
            return self._feeding[stream]

    def detach(self, stream: str) -> None:
        """Detach the source of a stream; ConflictError if no source is attached."""
        with self._lock:
            running = self._feeding.pop(stream, None)
        if running is None:
            raise ConflictError(f"<{stream}> has no source attached")
        running.stop()
        running.join(time.monotonic() + LEAVE_S)
        self._note(stream, None)

    def status(self) -> dict[str, dict[str, object]]:
        """The status of each stream's source: its address, whether it has ended, and why."""
        with self._lock:
            return self._away | {stream: running.status() for stream, running in self._feeding.items()}

    def close(self) -> None:
        """Stop all sources, within ``LEAVE_S``."""
        with self._lock:
            feeding, self._feeding = list(self._feeding.values()), {}
        # All are stopped first, so that they end at the same time, within one `LEAVE_S`, not each within its own.
        for running in feeding:
            running.stop()
        end = time.monotonic() + LEAVE_S
        for running in feeding:
            running.join(end)


def _record(url: str, *, kept: bool = False) -> dict[str, Any]:
    """The record of a source that was not read yet, without secrets; ``kept``: the operator names it at each start."""
    return {"url": parse_address(url).text, "position": None, "time": None} | ({"kept": True} if kept else {})


_ANY_LATENESS = 2**53
"""Lateness is judged by each query, not by the reader."""


def _check_below(allowed: Sequence[str], url: str) -> None:
    """AttachError for a source that is below none of the allowed URLs."""
    if not any(_below(url, one) for one in allowed):
        raise AttachError(f"{parse_address(url).text}: sources there are not allowed: start the service with --attach")


def _below(url: str, allowed: str) -> bool:
    """Whether a URL is the allowed one or below it: same scheme, user, host and port, path in its folder."""
    requested, known = parse_address(url), parse_address(allowed)
    same = (requested.scheme, requested.host, requested.port, requested.user) == (
        known.scheme,
        known.host,
        known.port,
        known.user,
    )
    # "/data/../etc" lies below "/data" as a text, but not for the transport that resolves it.
    if not same or ".." in requested.path.split("/"):
        return False
    # With the slash, or "/data" would admit "/database".
    return requested.path == known.path or requested.path.startswith(known.path.rstrip("/") + "/")


class _Feeding:
    """Feeds a stream from a source: one thread reads, another publishes elements as soon as they arrive.

    The reader waits while queries cannot keep up, and while the source is ``paused``. Until then, elements stay in the
    file or the broker's queue.
    """

    def __init__(
        self,
        queries: Queries,
        stream: str,
        url: str,
        source: Source,
        record: Mapping[str, Any] | None,
        noted: Mapping[str, Any],
    ) -> None:
        self.address, self._record = url, record
        self.noted = noted
        """The record of the source, with the position after the last published item."""
        self.gap = None if queries.journal is None else queries.journal.last_gap(stream)
        self.lag: int | None = None
        self.url, self.ended, self.fault = parse_address(url).text, False, ""
        self.paused = Event()
        self._queries, self._stream, self._source, self._leaving = queries, stream, source, Event()
        self._batch: list[PlacedItem] = []
        self._elements = 0
        self._read, self._changed = False, Condition()
        self._threads = [
            Thread(target=run, name="streamgauge-attached", daemon=True) for run in (self._take, self._run)
        ]
        _LOG.info("the source is attached", extra=fields(stream=stream, source=self.url))
        for thread in self._threads:
            thread.start()

    def status(self) -> dict[str, object]:
        """The source's identity and state."""
        status_: dict[str, object] = {"source": self.url, "ended": self.ended, "refused": self._source.refused}
        status_ |= {"paused": True} if self.paused.is_set() else {}
        status_ |= {"lag": self.lag} if self.lag is not None else {}
        status_ |= {"gap": self.gap.borders} if self.gap is not None else {}
        return status_ | ({"fault": self.fault} if self.fault else {})

    def stop(self) -> None:
        """Stop reading and publishing."""
        self._leave()
        self._source.close()

    def join(self, end: float) -> None:
        """Wait for the threads until ``end`` (s of the monotonic clock)."""
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))

    def _leave(self) -> None:
        self._leaving.set()
        with self._changed:
            self._changed.notify_all()

    def _take(self) -> None:
        """Read the source until it ends; about ``BATCH`` elements are buffered."""
        try:
            for item in in_steps(self._source.items()):
                # Asked before the next item is read: afterwards the source is at another place.
                place = self._source.place() if isinstance(self._source, Resumable) else None
                self._note_gap(item)
                with self._changed:
                    self._changed.wait_for(lambda: self._elements < BATCH or self._leaving.is_set())
                    self._batch.append((item, place))
                    self._elements += count_of((item,))
                    self._changed.notify_all()
                if self._leaving.is_set():
                    return
        except (SourceError, ValueError) as error:
            self.fault = self.fault or str(error)
        finally:
            with self._changed:
                self._read = True
                self._changed.notify_all()

    def _note_gap(self, item: Taken) -> None:
        """Record a gap if the source, resumed, may have lost elements before its first item."""
        # Only the first item after a start can show a gap.
        record, self._record = self._record, None
        if record is None or record["time"] is None:
            return
        resumable = isinstance(self._source, Resumable) and record["position"] is not None
        # Two cases: a source without places may have lost anything between the two processes; one with places knows
        # itself whether the elements after its position still exist.
        if not resumable or (isinstance(self._source, Resumable) and self._source.lost):
            self.gap = Gap(self.url, record["time"], first_time(item), UNREAD)
            if self._queries.journal is not None:
                self._queries.journal.note_gap(self._stream, self.gap)
            _LOG.warning("%s", self.gap, extra=fields(stream=self._stream, source=self.url))

    def _run(self) -> None:
        """Publish the buffered items until the source ends."""
        try:
            while batch := self._next():
                self._publish(batch)
        except (ConflictError, ValueError, NotDurableError) as error:
            self.fault = self.fault or str(error)
            self._leave()
            self._source.close()
        finally:
            self.ended = True
            why = f": {self.fault}" if self.fault else ""
            level, about = ERROR if self.fault else INFO, fields(stream=self._stream, source=self.url)
            _LOG.log(level, "the source has ended%s", why, extra=about)

    def _next(self) -> list[PlacedItem]:
        """Wait for items and take all that are buffered; an empty list at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._batch or self._read or self._leaving.is_set())
            batch, self._batch, self._elements = self._batch, [], 0
            self._changed.notify_all()
            return batch

    def _publish(self, batch: Sequence[PlacedItem]) -> None:
        items, (last, place) = [item for item, _ in batch], batch[-1]
        reached = latest_time(last)
        noted = partial(self._note_place, reached, place)
        while batch and not self._leaving.is_set():
            if self.paused.is_set():
                self._leaving.wait(WAIT_S)
                continue
            try:
                self._queries.publish(self._stream, items, noted=noted)
            # Both pass; the batch stays here meanwhile, the reader fills the next one and then waits too.
            except (QueriesBusyError, NotWrittenError):
                self._leaving.wait(WAIT_S)
            else:
                self.lag = self._queries.now() - reached
                if place is not None and isinstance(self._source, Resumable):
                    # After ``publish``, which returns when the elements are durable: the transport may forget them
                    # now.
                    self._source.settle(place)
                return

    def _note_place(self, time: int, place: object, _readers: int) -> None:
        """Record the position in the source in the journal, together with the elements before it."""
        position = self._source.position(place) if isinstance(self._source, Resumable) and place is not None else None
        self.noted = {**self.noted, "position": position, "time": time}
        if self._queries.journal is not None:
            self._queries.journal.note("source", self._stream, self.noted)
