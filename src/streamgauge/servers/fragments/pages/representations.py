"""Representations of pages: negotiated, compressed, tagged, and cached while they are up to date.

Also the limits and the counters of a fragments server.
"""

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import blake2b
from typing import Final, NamedTuple, TypeAlias

from starlette.types import Scope

from streamgauge.servers.fragments import TIME, VERSION, SizedCache
from streamgauge.servers.fragments.pages import FragmentRequestError, raw_path, read_fragment_request
from streamgauge.servers.fragments.pages.dataset import DataSet, Page, TooManyError, ValidityError
from streamgauge.servers.fragments.pages.formats import FORMATS, POLICY, PageFormat, PageView, dataset_list
from streamgauge.servers.fragments.pages.metadata import Syntax
from streamgauge.servers.fragments.pages.selections import Selection
from streamgauge.servers.fragments.store import DamagedStoreError
from streamgauge.servers.http.headers import (
    CODING_NAMES,
    CODINGS,
    MIN_CODED_SIZE,
    BaseAddress,
    HostError,
    content_coding,
    date_text,
    weights,
)
from streamgauge.servers.http.limits import CrowdedError
from streamgauge.servers.http.metrics import Metric
from streamgauge.servers.http.replies import Header, Reply, error_reply, header_lines, whole_text


@dataclass(frozen=True, slots=True)
class FragmentLimits:
    """Limits of a server: bytes of an address and of a body written, bytes of cached bodies, open connections.

    ``subscribers`` is the number of open event streams.
    """

    address: int = 16_384
    body: int = 16 * 2**20
    kept: int = 128 * 2**20
    connections: int = 2_000
    subscribers: int = 1_000


class FragmentCounts:
    """Counters: requests by data set and status, bytes sent, bodies from the cache and bodies generated."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()
        self.bytes = self.kept = self.made = 0

    def metrics(self, datasets: Sequence[DataSet], kept_bytes: int) -> Iterator[Metric]:
        """All counters, and the sizes of the data sets; ``kept_bytes`` is the size of the cache."""
        requests = sorted(self.requests.items())
        name = "streamgauge_fragments"
        yield Metric(
            f"{name}_requests_total",
            "counter",
            "Requests answered.",
            tuple(({"dataset": dataset, "status": str(status)}, count) for (dataset, status), count in requests),
        )
        yield Metric(f"{name}_bytes_total", "counter", "Bytes of bodies sent.", (({}, self.bytes),))
        bodies = (({"from": "kept"}, self.kept), ({"from": "made"}, self.made))
        yield Metric(f"{name}_bodies_total", "counter", "Bodies from the cache, and generated ones.", bodies)
        yield Metric(f"{name}_kept_bytes", "gauge", "Bytes of cached bodies.", (({}, kept_bytes),))
        quads = tuple(({"dataset": dataset.name}, dataset.size) for dataset in datasets)
        yield Metric(f"{name}_quads", "gauge", "Quads of a data set.", quads)
        versions = tuple(({"dataset": dataset.name}, dataset.store.version) for dataset in datasets)
        yield Metric(f"{name}_version", "gauge", "The version of a data set.", versions)


_OVERHEAD = 1_500
"""Approximate bytes of memory of a representation besides its body."""


@dataclass(slots=True)
class Representation:
    """A page as it is sent: its body, its validator, and the headers that do not depend on the time."""

    dataset: DataSet
    page: Page
    body: bytes
    tag: bytes
    typed: tuple[Header, ...]
    """Content-Type and, if compressed, Content-Encoding."""
    until: int | None
    """The earliest end of facts that the body itself displays; ``None`` if it displays none."""

    @property
    def kept_headers(self) -> list[Header]:
        """The headers that a 304 has as well (RFC 9110, 15.4.5)."""
        return [(b"etag", self.tag), VARY]

    @property
    def headers(self) -> list[Header]:
        """The headers that do not depend on the time."""
        return [*self.kept_headers, *self.typed]

    @property
    def size(self) -> int:
        """Approximate bytes of memory."""
        return len(self.body) + _OVERHEAD


YEAR_S: Final = 31_536_000
"""The longest lifetime sent; RFC 2616, 14.21, advised against more than a year."""


_TIME: Final = TIME.lower().encode()
_VERSION: Final = VERSION.lower().encode()


def clock_headers(now: int) -> tuple[tuple[bytes, bytes], tuple[bytes, bytes]]:
    """The headers that show the server's clock (ms): Date in whole seconds, Server-Time in ms."""
    return (b"date", date_text(now // 1000)), (_TIME, b"%d" % now)


def freshness_headers(dataset: DataSet, page: Page, now: int) -> list[tuple[bytes, bytes]]:
    """Cache-Control and Expires: fresh until the page's first fact ends, else for the publisher's period.

    Without either, or with less than a second left, clients have to revalidate (no-cache). Expires repeats the end as
    a time, which stays correct behind proxies that replace Date and send no Age.
    """
    return _freshness(_lasting(dataset, page, now), now // 1000)


def _lasting(dataset: DataSet, page: Page, now: int) -> int:
    """The whole seconds for which a page is fresh; 0 or less if unknown."""
    lasting = page.until - now if page.until is not None else dataset.period
    # Rounded down, so that no copy is fresh beyond the end: 2.7 s before it, `max-age` is 2.
    return min((lasting or 0) // 1000, YEAR_S)


def _freshness(seconds: int, second: int) -> list[Header]:
    """The headers of a page that is fresh for ``seconds`` from ``second`` (s since 1970) on."""
    if seconds <= 0:
        return [(b"cache-control", b"no-cache")]
    return [(b"cache-control", b"max-age=%d" % seconds), (b"expires", date_text(second + seconds))]


def timed_headers(dataset: DataSet, page: Page, now: int) -> list[Header]:
    """The headers that depend on when a page is sent: freshness, the data set's version, Last-Modified."""
    return _timed(_lasting(dataset, page, now), now // 1000, dataset.version, page.changed // 1000)


def _timed(seconds: int, second: int, version: bytes, changed: int) -> list[Header]:
    modified = _modified(changed, second)
    return [
        *_freshness(seconds, second),
        (_VERSION, version),
        *([] if modified is None else [(b"last-modified", modified)]),
    ]


@lru_cache(maxsize=500)
def _timed_lines(seconds: int, second: int, version: bytes, changed: int) -> bytes:
    return header_lines(_timed(seconds, second, version, changed))


def page_response(shown: Representation, now: int) -> bytes:
    """The whole response to an unconditional GET of a page, the same bytes as by ``send_reply``."""
    dataset, page = shown.dataset, shown.page
    timed = _timed_lines(_lasting(dataset, page, now), now // 1000, dataset.version, page.changed // 1000)
    date, (_, shown_time) = clock_headers(now)
    typed = _lines((VARY, *shown.typed))
    lines = b"etag: %b\r\n%b%bdate: %b\r\n%b: %b\r\n" % (shown.tag, typed, timed, date[1], _TIME, shown_time)
    return whole_text(lines, shown.body)


_lines: Final = lru_cache(maxsize=200)(header_lines)


def tag(body: bytes, suffix: str) -> bytes:
    """The strong validator of a representation: a hash of its content or identity, and a suffix for its coding."""
    return b'"%s%s"' % (blake2b(body, digest_size=9).hexdigest().encode(), suffix.encode())


def last_modified(page: Page, now: int) -> bytes | None:
    """Last-Modified; ``None`` within the same second, in which the page may change again (RFC 9110, 8.8.2.2)."""
    return _modified(page.changed // 1000, now // 1000)


def _modified(changed: int, second: int) -> bytes | None:
    return date_text(changed) if changed < second else None


@dataclass(frozen=True, slots=True, eq=False)
class Offer:
    """A format under one of its media types."""

    format: PageFormat
    type: str


@lru_cache(maxsize=2000)
def acceptable_offers(header: str) -> tuple[Offer, ...]:
    """The formats that an Accept header accepts, best first; all of them without a header."""
    wanted = weights(header or "*/*")
    offers = [Offer(form, name) for form in FORMATS for name in form.types]
    first = {form.name: number for number, form in enumerate(FORMATS)}
    weighed = [(_weight(offer, wanted), offer) for offer in offers]
    order = sorted(weighed, key=lambda pair: (-pair[0], first[pair[1].format.name]))
    return tuple(offer for weight, offer in order if weight > 0)


def _weight(offer: Offer, wanted: Sequence[tuple[str, float]]) -> float:
    """The weight of the most specific range for a media type; ranges cover only a format's first media type."""
    kind = offer.type.partition("/")[0]
    ranges = (f"{kind}/*", "*/*") if offer.type == offer.format.types[0] else ()
    # A worked example: under `text/*;q=0.5, text/turtle` Turtle has the weight 1, since its own name comes before the
    # range.
    for offered in (offer.type, *ranges):
        weights = [weight for type_wanted, weight in wanted if type_wanted == offered]
        if weights:
            return max(weights)
    return 0.0


Headers: TypeAlias = Mapping[bytes, bytes]


class PageKey(NamedTuple):
    """Everything that a representation depends on besides the data: base, path, query, and two headers as sent.

    ``kind`` is Accept, ``coding`` is Accept-Encoding.
    """

    base: str
    path: bytes
    query: bytes
    kind: bytes | None
    coding: bytes | None


class SeenKeys:
    """An approximate set of recently seen keys, one byte per hash; it is cleared after ``limit`` new keys.

    The cache admits only keys that are requested a second time, so that a crawl does not evict everything (the
    doorkeeper of TinyLFU: Einziger, Friedman, Manes, ACM Transactions on Storage 13(4), 2017).
    """

    def __init__(self, limit: int = 20_000) -> None:
        self._seen, self._limit, self._left = bytearray(_SEEN_PLACES), limit, limit

    def again(self, key: Hashable) -> bool:
        """Whether a key has probably been seen before; adds it."""
        place = hash(key) % _SEEN_PLACES
        # Two keys may share a byte: then one is cached on its first request, which is harmless.
        if self._seen[place]:
            return True
        if not self._left:
            self._seen, self._left = bytearray(_SEEN_PLACES), self._limit
        self._seen[place] = 1
        self._left -= 1
        return False


_SEEN_PLACES: Final = 1 << 18
"""Size of the table of ``SeenKeys`` in bytes."""

_WITH_TRIPLE_TERMS: Final = tuple(form for form in FORMATS if form.syntax is not Syntax.JSON_LD)

VARY: Final[Header] = (b"vary", b"Accept, Accept-Encoding")


class UnacceptableError(ValueError):
    """A client that accepts none of the available formats; the sentence lists them."""


REFUSALS: Final[dict[type[Exception], int]] = {
    HostError: 400,
    FragmentRequestError: 400,
    ValidityError: 400,
    UnacceptableError: 406,
    TooManyError: 422,
    DamagedStoreError: 503,
    CrowdedError: 503,
}
"""Status by error of requests that cannot be answered."""


def refusal(error: Exception) -> Reply:
    """The reply to a request that cannot be answered; one that was refused for load may be retried."""
    again = ((b"retry-after", b"1"),) if isinstance(error, CrowdedError) else ()
    return error_reply(REFUSALS[type(error)], str(error), *again)


def versioned(reply: Reply, dataset: DataSet) -> Reply:
    """The reply with the version of the data set."""
    return replace(reply, headers=[*reply.headers, (_VERSION, dataset.version)])


class Representations:
    """Representations of pages; those that are requested a second time are cached."""

    def __init__(
        self, datasets: Sequence[DataSet], limits: FragmentLimits, addressing: BaseAddress, counts: FragmentCounts
    ) -> None:
        self._datasets, self._addressing, self._counts = datasets, addressing, counts
        self._bodies = SizedCache[PageKey, Representation](limits.kept, share=1)
        self._seen = SeenKeys()

    @property
    def held(self) -> int:
        """The size of the cache in bytes."""
        return self._bodies.size

    def key(self, scheme: str, path: bytes, query: bytes, headers: Headers) -> PageKey:
        """The key of a request by its parts; HostError."""
        base = self._addressing(scheme, headers)
        return PageKey(base, path, query, headers.get(b"accept"), headers.get(b"accept-encoding"))

    def key_of(self, scope: Scope, headers: Headers) -> PageKey:
        """The key of an ASGI request; HostError."""
        return self.key(scope["scheme"], raw_path(scope), scope["query_string"], headers)

    def kept(self, key: PageKey) -> Representation | None:
        """The cached representation for a request, if it is still up to date."""
        kept = self._bodies.get(key)
        if kept is None or not kept.dataset.shows(kept.page):
            return None
        self._counts.kept += 1
        return kept

    def made(self, dataset: DataSet, key: PageKey, headers: Headers) -> Representation:
        """The representation for a request, generated if necessary.

        UnacceptableError, FragmentRequestError, TooManyError.
        """
        request = read_fragment_request(key.path, key.query, dataset.shape, key.base, dataset.largest)
        page = dataset.page(request.selection, request.number, request.limit)
        before = self._bodies.get(key)
        # The page object itself is the proof that nothing has changed: a data set makes a new one whenever the page
        # differs.
        if before is not None and before.page is page and before.until in (None, page.until):
            return before
        self._counts.made += 1
        representation = represent(PageView(dataset, key.base, request, page), headers)
        if self._seen.again(key):
            self._bodies.put(key, representation)
        return representation

    def lacks(self, dataset: DataSet, key: PageKey) -> Selection | None:
        """The selection of a request that needs a long scan first; ``None`` for most. FragmentRequestError.

        Only bindings or a repeated variable require a scan, so requests without either are not parsed here.
        """
        base, path, query, _, _ = key
        # A variable is written ?x, percent-encoded or not; one that occurs once restricts nothing.
        if b"values=" not in query and query.count(b"?") + query.count(b"%3F") + query.count(b"%3f") < 2:
            return None
        request = read_fragment_request(path, query, dataset.shape, base, dataset.largest).selection
        return request if dataset.lacks(request) else None

    def listing(self, scope: Scope, headers: Headers) -> Reply:
        """The reply with the list of data sets."""
        offer = _offer(headers, FORMATS)
        body = dataset_list(self._addressing(scope["scheme"], headers), self._datasets, offer.format).encode()
        return Reply(200, [*_typed(offer, plain=True), (b"cache-control", b"no-cache"), VARY], body)


def represent(view: PageView, headers: Headers) -> Representation:
    """A page in the best format that a client accepts; UnacceptableError."""
    able: Sequence[PageFormat] = FORMATS
    for quad in view.page.quads:
        if quad[2].startswith("<<"):
            able = _WITH_TRIPLE_TERMS
            break
    offer, typed = _typed_offer(headers.get(b"accept", b""), able is FORMATS)
    text, identity = offer.format.write(view)
    body, validator, coded = encoded(text.encode(), offer.format.name, headers, identity)
    until = view.page.until if offer.format.timely else None
    return Representation(view.dataset, view.page, body, validator, (*typed, *coded) if coded else typed, until)


def accepted_coding(headers: Headers) -> str:
    """The content coding that a client prefers."""
    wanted = headers.get(b"accept-encoding")
    return content_coding(wanted.decode("latin-1"), CODING_NAMES) if wanted else "identity"


def encoded(
    body: bytes, name: str, headers: Headers, identity: bytes | None = None
) -> tuple[bytes, bytes, list[Header]]:
    """A body, compressed if that pays: its bytes, its validator and the header of its coding.

    ``identity`` is a shorter text to hash in place of the body; it must differ whenever the body differs.
    """
    coding = accepted_coding(headers) if len(body) >= MIN_CODED_SIZE else ""
    # A strong validator differs by coding (RFC 9110, 8.8.3.3): its suffix is the name of the format, and the first
    # letter of the coding.
    content = body if identity is None else identity
    if coding not in CODINGS:
        return body, tag(content, name), []
    return CODINGS[coding](body), tag(content, name + coding[:1]), [(b"content-encoding", coding.encode())]


def _offer(headers: Headers, able: Sequence[PageFormat]) -> Offer:
    """The best format that a client accepts, among those that can express the page."""
    return _best_offer(headers.get(b"accept", b""), able)


@lru_cache(maxsize=2000)
def _typed_offer(accepted: bytes, plain: bool) -> tuple[Offer, tuple[Header, ...]]:
    """The best accepted format, and its headers, for a page that is ``plain`` or has triple terms."""
    offer = _best_offer(accepted, FORMATS if plain else _WITH_TRIPLE_TERMS)
    return offer, _typed(offer, plain)


def _best_offer(accepted: bytes, able: Sequence[PageFormat]) -> Offer:
    for offer in acceptable_offers(accepted.decode("latin-1")):
        if able is FORMATS or offer.format in able:
            return offer
    why = "Accept names no available format" if able is FORMATS else "this page has triple terms (RDF 1.2)"
    raise UnacceptableError(f"{why}: it is available as {', '.join(form.types[0] for form in able)}")


@lru_cache(maxsize=100)
def _typed(offer: Offer, plain: bool) -> tuple[Header, ...]:
    """The headers of a format, for a page that is ``plain`` or has triple terms."""
    parameters = "; charset=utf-8" if offer.type.startswith("text/") else ""
    if offer.format.timely:
        policy = (b"content-security-policy", POLICY.encode())
        return (b"content-type", f"{offer.type}{parameters}".encode()), policy
    version = "" if plain else "; version=1.2"
    return ((b"content-type", f"{offer.type}{parameters}{version}".encode()),)
