"""The history of a fragment as resources: its changes since a version, its state at an instant, its events.

``?since=VERSION`` is a cacheable resource, without state for any client. ``?at=TIME`` is available for data sets whose
store keeps removed quads. With ``Accept: text/event-stream`` changes are sent as they happen (HTML standard, 9.2): a
subscriber has no queue, but is woken, and reads the changes since its last event from the store's log. A slow
subscriber gets several changes combined; one that reads nothing is disconnected.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final
from urllib.parse import quote, unquote_plus

from starlette.types import Receive, Scope

from streamgauge.servers.fragments import PATCH_TYPE, Quad
from streamgauge.servers.fragments.pages import FragmentRequest, FragmentRequestError, raw_path, read_fragment_request
from streamgauge.servers.fragments.pages.dataset import (
    MAX_SCANNED,
    DataSet,
    Page,
    TooManyError,
    read_time,
)
from streamgauge.servers.fragments.pages.formats import PageView
from streamgauge.servers.fragments.pages.representations import (
    REFUSALS,
    VARY,
    accepted_coding,
    clock_headers,
    encoded,
    freshness_headers,
    refusal,
    represent,
    versioned,
)
from streamgauge.servers.fragments.pages.selections import Selection, SelectionIndex
from streamgauge.servers.fragments.pages.terms import skolemised
from streamgauge.servers.fragments.store import QuadChanges
from streamgauge.servers.http import events
from streamgauge.servers.http.headers import (
    BaseAddress,
    accepts,
    date_text,
    unchanged,
)
from streamgauge.servers.http.limits import Gate
from streamgauge.servers.http.replies import ANYONE, Header, Reply, error_reply

Headers = Mapping[bytes, bytes]

LARGE: Final = 1_000
"""Changed quads above which a smaller fragment is to be fetched again instead."""

_KEPT: Final = 1_000


@dataclass(frozen=True, slots=True)
class HistoryRequest:
    """A request for a fragment's changes since ``version``; ``what`` events are to contain (``EVENT_CONTENTS``)."""

    fragment: FragmentRequest
    version: str | None
    what: str | None
    base: str


def read_history_request(dataset: DataSet, scope: Scope, headers: Headers, addressing: BaseAddress) -> HistoryRequest:
    """The request for a history; FragmentRequestError, HostError."""
    base = addressing(scope["scheme"], headers)
    fragment, parameters = split_request(dataset, scope, base, ("since", "what"))
    return HistoryRequest(fragment, parameters.get("since"), parameters.get("what"), base)


def split_request(
    dataset: DataSet, scope: Scope, base: str, names: Collection[str]
) -> tuple[FragmentRequest, dict[str, str]]:
    """The fragment of a request, and the values of the parameters ``names``; FragmentRequestError."""
    parameters: dict[str, str] = {}
    parts = []
    for part in scope["query_string"].split(b"&"):
        name, _, value = part.partition(b"=")
        if name.decode("latin-1") in names:
            parameters[name.decode()] = unquote_plus(value.decode("latin-1"))
        elif part:
            parts.append(part)
    return read_fragment_request(raw_path(scope), b"&".join(parts), dataset.shape, base, dataset.largest), parameters


def store_version(dataset: DataSet, version: str) -> int | None:
    """The store's version in a version of a data set; ``None`` if invalid or from before a restart."""
    began, _, digits = version.partition(".")
    # The first part is the start of the process: after a restart a store in memory counts its versions from 0 again.
    start = dataset.version.decode().partition(".")[0]
    return int(digits) if began == start and digits.isascii() and digits.isdigit() and len(digits) < 19 else None


def fragment_changes(dataset: DataSet, selection: Selection, since: int | None) -> QuadChanges | None:
    """The changes of a fragment; ``None`` if they are not logged, or are more than the fragment's quads."""
    # Matches may overlap; ``_taken`` removes the duplicates.
    changes = [None if since is None else dataset.store.changed(match, since) for match in selection.matches]
    logged = [change for change in changes if change is not None]
    if len(logged) < len(changes):
        return None
    added = _taken(selection, (change.added for change in logged))
    removed = _taken(selection, (change.removed for change in logged))
    count = len(added) + len(removed)
    # A patch longer than the fragment itself is of no use; small ones are sent anyway, to spare the client a read.
    if count > LARGE and count > sum(map(dataset.store.count, selection.matches)):
        return None
    return QuadChanges(dataset.store.version, added, removed)


def _taken(selection: Selection, quads: Iterable[Sequence[Quad]]) -> tuple[Quad, ...]:
    return tuple(dict.fromkeys(quad for part in quads for quad in part if selection.takes(quad)))


def patch_lines(changes: QuadChanges, base: str) -> Iterator[str]:
    """The lines of an RDF Patch: deletions, then additions."""
    # Deletions first: a quad that was removed and added again in between must be there at the end.
    for letter, quads in (("D", changes.removed), ("A", changes.added)):
        for quad in quads:
            yield f"{letter} {' '.join(skolemised(term, base) for term in quad if term)} ."


def _has(query: bytes, name: bytes) -> bool:
    """Whether a query has a parameter of a name (``=`` at its end)."""
    return name in query and any(part.startswith(name) for part in query.split(b"&"))


class ChangesHandler:
    """Answers ``?since=VERSION``; replies are cached per version of the data set."""

    def __init__(self, addressing: BaseAddress) -> None:
        self._addressing = addressing
        self._kept: OrderedDict[Hashable, Reply] = OrderedDict()

    def takes(self, method: str, query: bytes, headers: Headers) -> bool:
        """Whether it is a read with ``since`` that does not accept events."""
        return (
            method in ("GET", "HEAD")
            and _has(query, b"since=")
            and not accepts(headers.get(b"accept", b""), events.MEDIA_TYPE)
        )

    async def __call__(self, dataset: DataSet, scope: Scope, receive: Receive) -> Reply:  # noqa: ARG002
        """A patch, or 410 if the fragment has to be fetched again."""
        now, headers = dataset.clock(), dict(scope["headers"])
        try:
            since = read_history_request(dataset, scope, headers, self._addressing)
            reply = self._reply(dataset, since, headers, now)
        except tuple(REFUSALS) as error:
            reply = refusal(error)
        return versioned(reply, dataset)

    def _reply(self, dataset: DataSet, since: HistoryRequest, headers: Headers, now: int) -> Reply:
        coded = accepted_coding(headers)
        # The current version is a part of the key, so a change makes all kept replies old without clearing them.
        key = dataset.name, dataset.version, since.base, since.fragment.fragment, since.version, coded
        reply = self._kept.get(key)
        if reply is None:
            reply = self._kept[key] = self._new_reply(dataset, since, headers)
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        if reply.status != 200:
            return reply
        fresh = freshness_headers(dataset, Page((), 0, dataset.until(since.fragment.selection), now), now)
        timed = [*reply.headers, *fresh]
        if unchanged(dict(reply.headers)[b"etag"], None, headers.get(b"if-none-match"), None):
            return Reply(304, [header for header in timed if not header[0].startswith(b"content-")])
        return Reply(200, timed, reply.body)

    def _new_reply(self, dataset: DataSet, since: HistoryRequest, headers: Headers) -> Reply:
        changes = fragment_changes(dataset, since.fragment.selection, store_version(dataset, since.version or ""))
        if changes is None:
            return error_reply(410, f"the changes since {since.version!r:.60} are not logged: fetch the fragment again")
        version = dataset.version.decode()
        head = [f'H prev "{since.version}" .', f'H id "{version}" .']
        body = "".join(f"{line}\n" for line in (*head, *patch_lines(changes, since.base))).encode()
        body, validator, encoding = encoded(body, "p", headers)
        return Reply(200, [(b"content-type", PATCH_TYPE.encode()), VARY, (b"etag", validator), *encoding], body)


WAITING: Final = 64
"""Requests that may wait for others: each is answered in a thread, one at a time."""

_FOR_EVER: Final = b"max-age=31536000, immutable"


class PastHandler:
    """Answers ``?at=TIME``; a past state never changes, so caches may keep it forever."""

    def __init__(self, addressing: BaseAddress) -> None:
        self._addressing, self._gate = addressing, Gate(WAITING, "read the past")

    def takes(self, method: str, query: bytes, _headers: Mapping[bytes, bytes]) -> bool:
        """Whether it is a read with ``at``."""
        return method in ("GET", "HEAD") and _has(query, b"at=")

    async def __call__(self, dataset: DataSet, scope: Scope, receive: Receive) -> Reply:  # noqa: ARG002
        """A page, or 410 if the history does not reach back so far."""
        async with self._gate.through():
            return await asyncio.to_thread(self._reply, dataset, scope, dataset.clock())

    def _reply(self, dataset: DataSet, scope: Scope, now: int) -> Reply:
        headers = dict(scope["headers"])
        base = self._addressing(scope["scheme"], headers)
        fragment, parameters = split_request(dataset, scope, base, ("at",))
        instant = read_time(parameters["at"], now)
        quads = _past_quads(dataset, fragment, instant)
        if quads is None:
            return error_reply(
                410, f"the history does not reach back to {parameters['at']:.40}: ask for a later time, or none"
            )
        size = fragment.limit or dataset.page_size
        first = (fragment.number - 1) * size
        page = Page(tuple(quads[first : first + size]), len(quads), None, instant)
        representation = represent(PageView(dataset, base, _then(fragment, parameters["at"]), page, instant), headers)
        timed: list[Header] = [
            # The current instant may still change within its millisecond.
            (b"cache-control", _FOR_EVER if instant < now else b"no-cache"),
            (b"memento-datetime", date_text(instant // 1000)),
            (b"link", f'<{base}{fragment.page}>; rel="original"'.encode("latin-1")),
        ]
        if unchanged(representation.tag, None, headers.get(b"if-none-match"), None):
            return Reply(304, [*representation.kept_headers, *timed])
        return Reply(200, [*representation.headers, *timed], representation.body)


def _past_quads(dataset: DataSet, fragment: FragmentRequest, instant: int) -> list[Quad] | None:
    """All quads of the fragment at an instant; ``None`` if the history does not reach back so far."""
    quads_: dict[Quad, None] = {}
    for match in fragment.selection.matches:
        quads = dataset.store.at(match, instant, MAX_SCANNED + 1)
        if quads is None:
            return None
        quads_.update((quad, None) for quad in quads if fragment.selection.takes(quad))
        if len(quads_) > MAX_SCANNED:
            raise TooManyError(f"more than {MAX_SCANNED} quads held then: bind another place")
    return list(quads_)


def _then(fragment: FragmentRequest, at: str) -> FragmentRequest:
    """The request with ``at`` in its addresses, for the links of a page."""
    parameter = f"at={quote(at, safe=':')}"
    first, page = (
        f"{address}{'&' if '?' in address else '?'}{parameter}" for address in (fragment.fragment, fragment.page)
    )
    return fragment._replace(fragment=first, page=page)


EVENT_CONTENTS: Final = ("changes", "version")
"""Contents of events: the lines of a patch, or only the version."""


@dataclass(eq=False, slots=True)
class FragmentSubscriber:
    """A subscriber of a fragment; ``sent`` is the store's version of its last event, ``None`` if unknown."""

    since: HistoryRequest
    signal: events.Signal
    sent: int | None

    @property
    def selection(self) -> Selection:
        """The selection of its fragment."""
        return self.since.fragment.selection


class EventsHandler:
    """Answers requests that accept ``text/event-stream``, at most ``limit`` at once."""

    def __init__(self, addressing: BaseAddress, limit: int) -> None:
        self._addressing, self._limit = addressing, limit
        self._heard: dict[str, SelectionIndex[FragmentSubscriber]] = {}
        self._subscribers: set[FragmentSubscriber] = set()
        self._leaving = False

    @property
    def subscribers(self) -> int:
        """The number of current subscribers."""
        return len(self._subscribers)

    def takes(self, method: str, _query: bytes, headers: Mapping[bytes, bytes]) -> bool:
        """Whether it is a GET that accepts events."""
        return method == "GET" and accepts(headers.get(b"accept", b""), events.MEDIA_TYPE)

    def leave(self) -> None:
        """End all responses, from any thread."""
        self._leaving = True
        for subscriber in tuple(self._subscribers):
            subscriber.signal.set()

    async def __call__(self, dataset: DataSet, scope: Scope, receive: Receive) -> Reply | events.Events:  # noqa: ARG002
        """Events until the client disconnects or the server stops."""
        headers = dict(scope["headers"])
        since = read_history_request(dataset, scope, headers, self._addressing)
        if since.what not in (None, *EVENT_CONTENTS):
            raise FragmentRequestError(f"what: {since.what!r:.40} is not one of {', '.join(EVENT_CONTENTS)}")
        if self.subscribers >= self._limit:
            sentence = f"{self._limit} subscribers are connected already: come again later, or poll with ?since="
            return error_reply(429, sentence, (b"retry-after", b"10"))
        last = headers.get(b"last-event-id", b"").decode("latin-1") or since.version
        response = events.Events(self._events(dataset, since, last))
        response.raw_headers += [*ANYONE, (b"vary", b"Accept"), *clock_headers(dataset.clock())]
        return response

    async def _events(self, dataset: DataSet, since: HistoryRequest, last: str | None) -> AsyncIterator[bytes]:
        sent = dataset.store.version if last is None else store_version(dataset, last)
        subscriber = FragmentSubscriber(since, events.Signal(), sent)
        # Registered before the log is read: a change in between wakes the subscriber, and none is missed.
        self._enter(dataset, subscriber)
        try:
            if last is None:
                version = dataset.version.decode()
                yield events.event(version.encode(), version, "version")
            while not self._leaving:
                if event := _due(dataset, subscriber):
                    yield event
                elif not await subscriber.signal.wait(events.BEAT_S):
                    yield events.BEAT
        finally:
            self._drop(dataset, subscriber)

    def _enter(self, dataset: DataSet, subscriber: FragmentSubscriber) -> None:
        if dataset.name not in self._heard:
            self._heard[dataset.name] = SelectionIndex()
            dataset.listen(partial(_wake, self._heard[dataset.name]))
        self._heard[dataset.name].put(subscriber, subscriber.selection)
        self._subscribers.add(subscriber)

    def _drop(self, dataset: DataSet, subscriber: FragmentSubscriber) -> None:
        self._heard[dataset.name].drop(subscriber, subscriber.selection)
        self._subscribers.discard(subscriber)


def _wake(index: SelectionIndex[FragmentSubscriber], changes: QuadChanges) -> None:
    """Wake the subscribers whose fragments may have changed."""
    for subscriber in index.touched((*changes.added, *changes.removed)):
        subscriber.signal.set()


def _due(dataset: DataSet, subscriber: FragmentSubscriber) -> bytes:
    """The event of all changes since the last one; empty without changes."""
    since, version = subscriber.since, dataset.version.decode()
    changes = fragment_changes(dataset, subscriber.selection, subscriber.sent)
    # Advanced even without changes: later requests to the log then need not go back as far.
    subscriber.sent = dataset.store.version
    if changes is None:
        return events.event(version.encode(), version, "reset")
    if not changes.added and not changes.removed:
        return b""
    data = version if since.what == "version" else "\n".join(patch_lines(changes, since.base))
    return events.event(data.encode(), version, "change")
