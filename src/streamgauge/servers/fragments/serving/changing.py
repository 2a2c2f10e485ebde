"""What changed in a fragment since a version: a resource that a cache can keep, without state for any client."""

from collections import OrderedDict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote_plus

from starlette.types import Receive, Scope, Send

from streamgauge.servers.fragments.quads import VERSION, Quad
from streamgauge.servers.fragments.serving.addresses import Addressing, HostError
from streamgauge.servers.fragments.serving.asked import Asked, AskedError, asked
from streamgauge.servers.fragments.serving.coding import CODINGS, NAMES, SMALLEST
from streamgauge.servers.fragments.serving.dataset import DataSet, Page
from streamgauge.servers.fragments.serving.freshness import clock_headers, lifetime, tag, unchanged
from streamgauge.servers.fragments.serving.negotiation import coding
from streamgauge.servers.fragments.serving.replying import Reply, reply_with, told
from streamgauge.servers.fragments.serving.selection import Selection
from streamgauge.servers.fragments.serving.skolem import named
from streamgauge.servers.fragments.storing import Changes

Headers = Mapping[bytes, bytes]

MEDIA_TYPE: Final = "application/rdf-patch"
LARGE: Final = 1_000
"""Changed quads beyond which a fragment with fewer quads is to be fetched again."""

_KEPT: Final = 1_000


@dataclass(frozen=True, slots=True)
class Since:
    """What is asked of a fragment's history: which fragment, its address without that, and since which version."""

    fragment: Asked
    version: str | None
    what: str | None
    base: str


def read_since(dataset: DataSet, scope: Scope, headers: Headers, addressing: Addressing) -> Since:
    """What a request asks for; AskedError or HostError says what is wrong with it."""
    base = addressing(scope["scheme"], headers)
    fragment, given = parted(dataset, scope, base, ("since", "what"))
    return Since(fragment, given.get("since"), given.get("what"), base)


def parted(dataset: DataSet, scope: Scope, base: str, names: Collection[str]) -> tuple[Asked, dict[str, str]]:
    """The fragment that a request is about, and what it says in parameters beside; AskedError for the rest."""
    given: dict[str, str] = {}
    parts = []
    for part in scope["query_string"].split(b"&"):
        name, _, value = part.partition(b"=")
        if name.decode("latin-1") in names:
            given[name.decode()] = unquote_plus(value.decode("latin-1"))
        elif part:
            parts.append(part)
    path = scope.get("raw_path") or str(scope["path"]).encode()
    return asked(path, b"&".join(parts), dataset.shape, base, dataset.largest), given


def number(dataset: DataSet, version: str) -> int | None:
    """The store's version behind a version of a data set; ``None`` for that of another process, or none at all."""
    began, _, digits = version.partition(".")
    known = dataset.version.decode().partition(".")[0]
    return int(digits) if began == known and digits.isascii() and digits.isdigit() and len(digits) < 19 else None


def changed(dataset: DataSet, selection: Selection, since: int | None) -> Changes | None:
    """What changed in a fragment; ``None`` when that is not known, or more than there is."""
    found = [None if since is None else dataset.store.changed(match, since) for match in selection.matches]
    known = [each for each in found if each is not None]
    if len(known) < len(found):
        return None
    added = _taken(selection, (each.added for each in known))
    removed = _taken(selection, (each.removed for each in known))
    many = len(added) + len(removed)
    if many > LARGE and many > sum(map(dataset.store.count, selection.matches)):
        return None
    return Changes(dataset.store.version, added, removed)


def _taken(selection: Selection, quads: Iterable[Sequence[Quad]]) -> tuple[Quad, ...]:
    return tuple(dict.fromkeys(quad for part in quads for quad in part if selection.takes(quad)))


def lines(changes: Changes, base: str) -> Iterator[str]:
    """The lines of a patch: what goes, what comes."""
    for letter, quads in (("D", changes.removed), ("A", changes.added)):
        for quad in quads:
            yield f"{letter} {' '.join(named(term, base) for term in quad if term)} ."


class Changing:
    """Answers ``?since=VERSION``; what it sent is kept while the data set stays as it is."""

    def __init__(self, addressing: Addressing) -> None:
        self._addressing = addressing
        self._kept: OrderedDict[Hashable, Reply] = OrderedDict()

    def takes(self, method: str, query: bytes, headers: Headers) -> bool:
        """Reading with ``since``, but for streams of events."""
        asks = b"since=" in query and any(part.startswith(b"since=") for part in query.split(b"&"))
        return method in ("GET", "HEAD") and asks and b"text/event-stream" not in headers.get(b"accept", b"")

    def leave(self) -> None:
        """Nothing is under way for long."""

    async def __call__(self, dataset: DataSet, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        """Answer with a patch, or say that the fragment has to be fetched again."""
        now, headers = dataset.clock(), dict(scope["headers"])
        try:
            since = read_since(dataset, scope, headers, self._addressing)
            reply = self._reply(dataset, since, headers, now)
        except (AskedError, HostError) as error:
            reply = told(400, str(error))
        version = VERSION.lower().encode(), dataset.version
        await reply_with(reply, scope["method"], send, *clock_headers(now), version)

    def _reply(self, dataset: DataSet, since: Since, headers: Headers, now: int) -> Reply:
        coded = coding(headers.get(b"accept-encoding", b"").decode("latin-1"), NAMES)
        key = dataset.name, dataset.version, since.base, since.fragment.fragment, since.version, coded
        reply = self._kept.get(key)
        if reply is None:
            reply = self._kept[key] = self._made(dataset, since, coded)
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        if reply.status != 200:
            return reply
        fresh = lifetime(dataset, Page((), 0, dataset.until(since.fragment.selection), now), now)
        timed = [*reply.headers, *fresh]
        if unchanged(dict(reply.headers)[b"etag"], None, headers.get(b"if-none-match"), None):
            return Reply(304, [header for header in timed if not header[0].startswith(b"content-")])
        return Reply(200, timed, reply.body)

    def _made(self, dataset: DataSet, since: Since, coded: str) -> Reply:
        changes = changed(dataset, since.fragment.selection, number(dataset, since.version or ""))
        if changes is None:
            return told(410, f"what changed since {since.version!r:.60} is not known here: fetch the fragment again")
        version = dataset.version.decode()
        head = [f'H prev "{since.version}" .', f'H id "{version}" .']
        body = "".join(f"{line}\n" for line in (*head, *lines(changes, since.base))).encode()
        used = coded if coded in CODINGS and len(body) >= SMALLEST else ""
        validator = tag(body, f"p{used[:1]}")
        typed = [(b"content-type", MEDIA_TYPE.encode()), (b"vary", b"Accept, Accept-Encoding"), (b"etag", validator)]
        if used:
            return Reply(200, [*typed, (b"content-encoding", used.encode())], CODINGS[used](body))
        return Reply(200, typed, body)
