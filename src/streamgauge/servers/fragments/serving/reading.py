"""Representations of pages: those that are kept while they are right, and those that are made."""

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from starlette.types import Scope

from streamgauge.servers.fragments.serving.addresses import Addressing
from streamgauge.servers.fragments.serving.asked import asked
from streamgauge.servers.fragments.serving.bodies import Bodies, Representation
from streamgauge.servers.fragments.serving.coding import CODINGS, NAMES, SMALLEST
from streamgauge.servers.fragments.serving.counting import Counts
from streamgauge.servers.fragments.serving.dataset import DataSet
from streamgauge.servers.fragments.serving.formats import FORMATS, Format
from streamgauge.servers.fragments.serving.freshness import tag
from streamgauge.servers.fragments.serving.limits import Limits
from streamgauge.servers.fragments.serving.listing import listing
from streamgauge.servers.fragments.serving.negotiation import Offer, accepted, coding
from streamgauge.servers.fragments.serving.pages import POLICY
from streamgauge.servers.fragments.serving.replying import Header, Reply
from streamgauge.servers.fragments.serving.selection import Selection
from streamgauge.servers.fragments.serving.view import View

Headers: TypeAlias = Mapping[bytes, bytes]

Key: TypeAlias = tuple[str, bytes, bytes, bytes | None, bytes | None]
"""All that a representation depends on beside its page: base, path, query, Accept, Accept-Encoding."""

_WITH_TRIPLE_TERMS: Final = tuple(form for form in FORMATS if form.triple_terms)

VARY: Final[Header] = (b"vary", b"Accept, Accept-Encoding")


class UnacceptableError(ValueError):
    """A client that accepts nothing that can be sent; the sentence lists what can."""


class Reading:
    """Pages of data sets as they are sent."""

    def __init__(self, datasets: Sequence[DataSet], limits: Limits, addressing: Addressing, counts: Counts) -> None:
        self._datasets, self._addressing, self._counts = datasets, addressing, counts
        self._bodies = Bodies(limits.kept)

    @property
    def held(self) -> int:
        """The bytes of what is kept."""
        return self._bodies.bytes

    def kept(self, scope: Scope, headers: Headers) -> Representation | None:
        """What was sent for the same request, if it is still right."""
        kept = self._bodies.get(self._key(scope, headers))
        if kept is None or not kept.dataset.shows(kept.page):
            return None
        self._counts.kept += 1
        return kept

    def made(self, dataset: DataSet, scope: Scope, headers: Headers) -> Representation:
        """The page that is asked for; UnacceptableError, AskedError and TooManyError say why there is none."""
        key = self._key(scope, headers)
        base = key[0]
        wish = asked(_path(scope), scope["query_string"], dataset.shape, base, dataset.largest)
        page = dataset.page(wish.selection, wish.number, wish.limit)
        before = self._bodies.get(key)
        if before is not None and before.page is page and before.until in (None, page.until):
            return before
        self._counts.made += 1
        made = represented(View(dataset, base, wish, page), headers)
        self._bodies.keep(key, made)
        return made

    def lacks(self, dataset: DataSet, scope: Scope) -> Selection | None:
        """What has to be looked at quad by quad, beside the loop, before the page that is asked for can be made.

        Only a variable that is there twice, or bindings, make that of a selection. AskedError.
        """
        query = scope["query_string"]
        if b"values=" not in query and query.count(b"?") + query.upper().count(b"%3F") < 2:
            return None
        base = self._addressing(scope["scheme"], dict(scope["headers"]))
        found = asked(_path(scope), query, dataset.shape, base, dataset.largest).selection
        return found if dataset.lacks(found) else None

    def listing(self, scope: Scope, headers: Headers) -> Reply:
        """The list of data sets."""
        offer = _offer(headers, FORMATS)
        body = listing(self._addressing(scope["scheme"], headers), self._datasets, offer.format).encode()
        return Reply(200, [*_typed(offer, FORMATS), (b"cache-control", b"no-cache"), VARY], body)

    def _key(self, scope: Scope, headers: Headers) -> Key:
        return (
            self._addressing(scope["scheme"], headers),
            _path(scope),
            scope["query_string"],
            headers.get(b"accept"),
            headers.get(b"accept-encoding"),
        )


def represented(view: View, headers: Headers) -> Representation:
    """A page in the best of the formats that a client accepts; UnacceptableError when there is none."""
    able = _WITH_TRIPLE_TERMS if any(quad[2].startswith("<<") for quad in view.page.quads) else FORMATS
    offer = _offer(headers, able)
    body = offer.format.write(view).encode()
    coded = coding(headers.get(b"accept-encoding", b"").decode("latin-1"), NAMES) if len(body) >= SMALLEST else ""
    validator = tag(body, offer.format.name + coded[:1])
    kept: list[Header] = [(b"etag", validator), VARY]
    sent = [*kept, *_typed(offer, able)]
    if coded in CODINGS:
        body = CODINGS[coded](body)
        sent.append((b"content-encoding", coded.encode()))
    return Representation(
        view.dataset, view.page, body, validator, sent, kept, view.page.until if offer.format.timely else None
    )


def _offer(headers: Headers, able: Sequence[Format]) -> Offer:
    """The best of what a client accepts, among the formats that can say what is to be sent."""
    for offer in accepted(headers.get(b"accept", b"").decode("latin-1")):
        if offer.format in able:
            return offer
    why = "what Accept names is not there" if able is FORMATS else "this page has triple terms (RDF 1.2)"
    raise UnacceptableError(f"{why}: it can be had as {', '.join(form.types[0] for form in able)}")


def _typed(offer: Offer, able: Sequence[Format]) -> list[Header]:
    """The headers of a format."""
    parameters = "; charset=utf-8" if offer.type.startswith("text/") else ""
    if offer.format.timely:
        policy = (b"content-security-policy", POLICY.encode())
        return [(b"content-type", f"{offer.type}{parameters}".encode()), policy]
    version = "; version=1.2" if able is _WITH_TRIPLE_TERMS else ""
    return [(b"content-type", f"{offer.type}{parameters}{version}".encode())]


def _path(scope: Scope) -> bytes:
    raw: bytes | None = scope.get("raw_path")
    return raw or str(scope["path"]).encode()
