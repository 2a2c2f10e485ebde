"""Writes over HTTP: authorised, limited, idempotent by key, conditional, and atomic per request."""

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qsl

import pyoxigraph as ox
from starlette.requests import Request as Incoming
from starlette.types import Receive, Scope

from streamgauge.formats.bounds import SERVED, check_rdf, read_json
from streamgauge.formats.charsets import CharsetError
from streamgauge.formats.instants import date_time
from streamgauge.formats.line_versions import without_versions
from streamgauge.formats.streams.format import Relabel
from streamgauge.formats.syntaxes import SENT, media_type, most_characters, reason, served_text
from streamgauge.model.algebra import Var
from streamgauge.model.fact import Fact
from streamgauge.model.terms import Term
from streamgauge.query.text import QueryError
from streamgauge.servers.fragments import DEFAULT, Quad, named_quad
from streamgauge.servers.fragments.annotations import UnknownMethodError
from streamgauge.servers.fragments.annotations import method as method_of
from streamgauge.servers.fragments.flights import Flights
from streamgauge.servers.fragments.labels import VOCABULARIES, Border, Label, LabelError, Style
from streamgauge.servers.fragments.pages import FragmentRequest, raw_path, read_fragment_request
from streamgauge.servers.fragments.pages.dataset import (
    VALIDITY_PARAMETERS,
    DataSet,
    Page,
    TooManyError,
    TripleMatch,
    read_time,
    validity,
)
from streamgauge.servers.fragments.pages.formats import FORMATS, PageView
from streamgauge.servers.fragments.pages.representations import REFUSALS, tag, versioned
from streamgauge.servers.fragments.pages.terms import TermError, read_node, unskolemised
from streamgauge.servers.fragments.store import FullError
from streamgauge.servers.fragments.writes import (
    Operation,
    TripleAllowance,
    WriteResult,
    addition,
    expiration,
    modification,
    replacement,
)
from streamgauge.servers.fragments.writes.queue import SECONDS, WriteBusyError, WriteQueue
from streamgauge.servers.fragments.writes.updates import read_local_update
from streamgauge.servers.http.access import Tokens, bearer
from streamgauge.servers.http.deadlines import DEADLINES, DeadlineError
from streamgauge.servers.http.headers import (
    ANY,
    CODINGS,
    BaseAddress,
    ConditionError,
    Conditions,
    PreconditionError,
    http_date,
    read_conditions,
)
from streamgauge.servers.http.limits import STATUS, counted_body, document_turn, load_parsers
from streamgauge.servers.http.protocol import ProtocolError, media_types, read_protocol
from streamgauge.servers.http.replies import Reply, error_reply
from streamgauge.servers.http.retries import BadKeyError, KeyReuseError, RetryKey, RetryMemory, read_key

PLACES: Final = ("subject", "predicate", "object")
STYLES: Final = ("method", "label", "vocabulary", "border")
"""Parameters that describe the annotations of a body."""

_KNOWN: Final = {
    "POST": {*VALIDITY_PARAMETERS, *STYLES},
    "PUT": {*PLACES, *VALIDITY_PARAMETERS, *STYLES},
    "DELETE": {*PLACES, "at"},
    "PATCH": {*VALIDITY_PARAMETERS, "at"},
}
_TIMES: Final = {"add": VALIDITY_PARAMETERS, "remove": (), "replace": ("by", *VALIDITY_PARAMETERS), "expire": ("at",)}
"""The operations in JSON, each with the further members that it may have."""

_SHAPE: Final = '[{"add": TURTLE, "until": TIME}, {"remove" | "expire": PATTERN}, {"replace": PATTERN, "by": TURTLE}]'


MAX_OPERATIONS: Final = 1_000
"""Operations in one request."""


class WriteRequestError(ValueError):
    """An invalid write; the sentence says what to send."""


class WriteMediaTypeError(ValueError):
    """A body of an unsupported media type; the sentence lists the supported ones."""


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """A write request; ``base`` is the server's address, ``fresh`` the prefix of new blank nodes' labels.

    ``triples`` limits the triples of its body.
    """

    method: str
    parameters: Mapping[str, str]
    media_type: str
    body: bytes
    style: Style
    base: str
    now: int
    fresh: str
    triples: TripleAllowance = field(default_factory=TripleAllowance)


def read_request(request: WriteRequest) -> list[Operation]:
    """The operations of a write request.

    WriteRequestError, WriteMediaTypeError, TooManyError, TermError, ValidityError, QueryError, LabelError.
    """
    unknown = request.parameters.keys() - _KNOWN[request.method]
    if unknown:
        known = ", ".join(sorted(_KNOWN[request.method]))
        raise WriteRequestError(f"{sorted(unknown)[0]:.40}: not a parameter of {request.method}, which has {known}")
    match request.method:
        # A form is an update too (SPARQL 1.1 Protocol, 2.2.1); no RDF syntax has its media type.
        case "POST" if request.media_type in media_types("update"):
            return _update(request)
        case "POST":
            return [addition(_facts(request))]
        case "PUT":
            return [replacement(_replaced(request), _facts(request))]
        case "DELETE":
            if request.body:
                raise WriteRequestError("DELETE takes no body: name the pattern in the address, or send a PATCH")
            return [_ending(_wanted(request.parameters, request.base), request.parameters.get("at"), request.now)]
    return _patch(request)


def _update(request: WriteRequest) -> list[Operation]:
    """The operations of a SPARQL Update, sent directly or by a form (SPARQL 1.1 Protocol, 2.2)."""
    if styles := sorted(request.parameters.keys() & set(STYLES)):
        raise WriteRequestError(f"{styles[0]}: not a parameter of an update, whose facts are not annotated")
    sent = read_protocol("update", "", request.media_type, _text(request.body))
    bounds = validity(request.parameters, request.style.label, request.now)
    update = read_local_update(sent, request.fresh, request.base, date_time(request.now), request.triples.take)
    return [modification(operation, request.now, bounds) for operation in update]


def _patch(request: WriteRequest) -> list[Operation]:
    if request.media_type in media_types("update"):
        return _update(request)
    if request.media_type != "application/json":
        raise WriteMediaTypeError(
            f"{request.media_type or 'no content type'}: PATCH takes {media_types('update')[0]} or application/json"
        )
    try:
        data = read_json(_text(request.body))
    except WriteRequestError:
        raise
    except ValueError as error:
        raise WriteRequestError(f"not JSON: {error}"[:200]) from None
    if not isinstance(data, list) or not all(isinstance(item, dict) for item in data) or len(data) > MAX_OPERATIONS:
        raise WriteRequestError(f"expected a list of at most {MAX_OPERATIONS} operations: {_SHAPE}")
    return [_operation(request, item, number) for number, item in enumerate(data)]


def _operation(request: WriteRequest, item: dict[str, Any], number: int) -> Operation:
    """An operation of a list in JSON; its own times take precedence over those of the address."""
    here = f"operation {number + 1}"
    # Two kinds in one operation fail in the test of the remaining members.
    kind = next((name_ for name_ in _TIMES if name_ in item), None)
    if kind is None or item.keys() - {kind, *_TIMES[kind]}:
        raise WriteRequestError(f"{here}: expected one of {_SHAPE}")
    own: dict[str, str] = {name: str(item[name]) for name in VALIDITY_PARAMETERS if name in item}
    times = own or {name: value for name, value in request.parameters.items() if name in VALIDITY_PARAMETERS}
    # Labels are of one operation, as those of a Turtle document are.
    part = replace(request, parameters=times, media_type="text/turtle", fresh=f"{request.fresh}o{number}")
    match kind:
        case "add":
            return addition(_facts(replace(part, body=_string(item["add"], here))))
        case "replace":
            facts = _facts(replace(part, body=_string(item.get("by"), here)))
            return replacement(_pattern(item["replace"], here, request.base), facts)
        case "remove":
            return expiration(_pattern(item["remove"], here, request.base), None)
    at = str(item.get("at", request.parameters.get("at", "now")))
    return _ending(_pattern(item["expire"], here, request.base), at, request.now)


def _string(value: object, here: str) -> bytes:
    if not isinstance(value, str):
        raise WriteRequestError(f"{here}: facts are Turtle text: {_SHAPE}")
    try:
        return value.encode()
    except UnicodeEncodeError:
        raise WriteRequestError(f"{here}: facts are not text that UTF-8 can write") from None


def _pattern(item: object, here: str, base: str) -> TripleMatch:
    if not isinstance(item, dict) or item.keys() - set(PLACES) or not all(isinstance(v, str) for v in item.values()):
        raise WriteRequestError(f'{here}: a pattern is {{"subject": TERM, "predicate": TERM, "object": TERM}}')
    return _wanted(item, base)


def _ending(wanted: TripleMatch, at: str | None, now: int) -> Operation:
    return expiration(wanted, None if at is None else read_time(at, now))


def _wanted(names: Mapping[str, str], base: str) -> TripleMatch:
    """A selection with at least one term; variables and empty places stand for any."""
    subject, predicate, object_ = (_place(names.get(name, ""), base) for name in PLACES)
    if subject is None and predicate is None and object_ is None:
        raise WriteRequestError("this would change every fact: give a subject, predicate or object")
    return subject, predicate, object_


def _replaced(request: WriteRequest) -> TripleMatch:
    """The selection of a PUT: all facts if the address has none (Graph Store Protocol, 5.3).

    An empty body must not delete everything by accident, so it requires a pattern.
    """
    if request.parameters.keys().isdisjoint(PLACES) and request.body.strip():
        return None, None, None
    return _wanted(request.parameters, request.base)


def _place(text: str, base: str) -> Term | None:
    node = unskolemised(read_node(text), base)
    return None if isinstance(node, Var) else node


def _facts(request: WriteRequest) -> list[Fact]:
    """The facts of a body: by its annotations, or all with the validity in the parameters."""
    parameters, style = request.parameters, request.style
    quads = list(_quads(request))
    if any(name in parameters for name in STYLES):
        return method_of(parameters.get("method", style.method)).facts(quads, _style(parameters, style))
    named = next((quad for quad in quads if quad[3] != DEFAULT), None)
    # Dropping the graph would turn an annotation into facts that always hold.
    if named is not None:
        raise WriteRequestError(f"{named[3]:.80}: facts have no graph; if graphs annotate them, add ?method=graphs")
    bounds = validity(parameters, style.label, request.now)
    return [Fact(quad[:3], *bounds) for quad in quads]


def _style(parameters: Mapping[str, str], own: Style) -> Style:
    try:
        label = Label(parameters.get("label", own.label))
        border = Border(parameters.get("border", own.border))
        vocabulary = VOCABULARIES[parameters["vocabulary"]] if "vocabulary" in parameters else own.vocabulary
    except (ValueError, KeyError) as error:
        choices = f"labels {', '.join(Label)}; borders {', '.join(Border)}; vocabularies {', '.join(VOCABULARIES)}"
        raise WriteRequestError(f"{error}: there are {choices}"[:300]) from None
    return Style(parameters.get("method", own.method), label, vocabulary, own.grouped, border, own.template)


def _quads(request: WriteRequest) -> Iterator[Quad]:
    """The quads of an RDF body, with the server's skolem IRIs turned into blank nodes."""
    syntax = SENT.get(request.media_type)
    if syntax is None:
        raise WriteMediaTypeError(f"{request.media_type or 'no content type'}: send facts as one of {', '.join(SENT)}")
    # Blank nodes of a request are new ones (RDF 1.1 Semantics: their labels mean nothing outside).
    relabel, base, capacity = Relabel(request.fresh), request.base, most_characters(len(request.body))
    try:
        check_rdf(request.body, syntax, SERVED)
        with document_turn(request.body, syntax):
            for quad in ox.parse(without_versions(request.body, syntax), format=syntax):
                request.triples.take()
                s, p, o, graph = named_quad(quad, relabel)
                # Prefixes and datatypes make terms much longer than their text: a few MB could expand to gigabytes.
                capacity -= len(s) + len(p) + len(o)
                if capacity < 0:
                    limit = most_characters(len(request.body))
                    raise ValueError(f"the terms of its facts have more than {limit} characters in all: write fewer")
                yield unskolemised(s, base), p, unskolemised(o, base), unskolemised(graph, base)
    # A ValueError as well, with a sentence and a status of its own.
    except TooManyError:
        raise
    except (SyntaxError, ValueError) as error:
        what = reason(error) if isinstance(error, SyntaxError) else error
        raise WriteRequestError(f"not {request.media_type}: {what}"[:300]) from None


def _text(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise WriteRequestError(f"not UTF-8 text: {error.reason} at byte {error.start}") from None


_DIGEST: Final = 18
"""Characters of the digest in an entity tag; the letter of the format follows."""


def require_conditions(dataset: DataSet, scope: Scope, base: str) -> None:
    """PreconditionError unless a write's conditions hold for the fragment in its address.

    The tag of any of its representations matches. An empty fragment has none, so ``If-None-Match: *`` writes only where
    nothing matches. The version of the data set, in quotes, is also a tag of every fragment, because a page of facts in
    graphs does not change when only their times do.
    """
    conditions = read_conditions(scope["headers"])
    since = dict(scope["headers"]).get(b"if-unmodified-since")
    if conditions == Conditions() and since is None:
        return
    names = tuple(place.encode() for place in PLACES)
    query = b"&".join(part for part in scope["query_string"].split(b"&") if part.partition(b"=")[0] in names)
    # Without the write's other parameters, which no fragment has.
    fragment = read_fragment_request(raw_path(scope), query, dataset.shape, base, dataset.largest)
    page = dataset.page(fragment.selection, fragment.number, fragment.limit)
    conditions.require(set(_tags(dataset, base, fragment, page, conditions)), f"the fragment {fragment.page:.200}")
    unmodified_since = None if since is None else http_date(since.decode("latin-1"))
    # A date that cannot be read counts as not holding: ignoring it could overwrite what the client has not seen.
    later = unmodified_since is None or page.changed // 1000 * 1000 > unmodified_since
    # If-Match takes precedence (RFC 9110, 13.1.4).
    if conditions.match is None and since is not None and later:
        raise PreconditionError(
            f"If-Unmodified-Since does not hold: {fragment.page:.200} has changed, nothing was changed"
        )


def _tags(dataset: DataSet, base: str, fragment: FragmentRequest, page: Page, conditions: Conditions) -> Iterator[str]:
    """The tags of the page in the formats that the conditions mention, in every content coding."""
    named = {tag for tag in (*(conditions.match or ()), *(conditions.none_match or ())) if tag not in ANY}
    formats = {tag.removeprefix("W/")[_DIGEST + 1 : _DIGEST + 2] for tag in named}
    if page.total:
        yield f'"{dataset.version.decode()}"'
    for form in FORMATS:
        if page.total and form.name in formats:
            _, identity = form.write(PageView(dataset, base, fragment, page))
            # Each coding of a representation has a tag of its own (RFC 9110, 8.8.3.3).
            for coding in ("", *(name[:1] for name in CODINGS)):
                yield tag(identity, form.name + coding).decode()


METHODS: Final = ("POST", "PUT", "PATCH", "DELETE")
MAX_KEYS: Final = 10_000
"""Idempotency keys remembered per token, in memory only."""

_STATUS: Final[dict[type[Exception], int]] = {
    **STATUS,
    **REFUSALS,
    WriteMediaTypeError: 415,
    FullError: 507,
    PreconditionError: 412,
    KeyReuseError: 422,
    DeadlineError: 422,
    WriteBusyError: 503,
    **dict.fromkeys(
        (
            BadKeyError,
            ConditionError,
            WriteRequestError,
            TermError,
            QueryError,
            ProtocolError,
            LabelError,
            UnknownMethodError,
        ),
        400,
    ),
}
_PARALLEL: Final = 4
"""Bodies parsed at the same time; others wait."""

Headers: TypeAlias = Mapping[bytes, bytes]


class WritesHandler:
    """Handles POST, PUT, PATCH and DELETE of clients with a token; without tokens nobody may write."""

    def __init__(self, tokens: Tokens | Sequence[str], addressing: BaseAddress, body: int) -> None:
        self._tokens, self._addressing, self._limit = Tokens.of(tokens), addressing, body
        self._done = RetryMemory[Reply](MAX_KEYS)
        self._under_way = Flights[RetryKey, Reply]()
        self._writers = WriteQueue()
        self._requests, self._turns = 0, asyncio.Semaphore(_PARALLEL)

    def takes(self, method: str, _query: bytes, _headers: Headers) -> bool:
        """Whether it is a write, by its method."""
        return method in METHODS

    async def __call__(self, dataset: DataSet, scope: Scope, receive: Receive) -> Reply:
        """Change the data set; the reply has the effect and the new version."""
        refused = self._refused(dict(scope["headers"]))
        try:
            reply = refused or await self._reply(dataset, scope, receive)
        except tuple(_STATUS) as error:
            status = next(status for kind, status in _STATUS.items() if isinstance(error, kind))
            again = ((b"retry-after", b"1"),) if status == 503 else ()
            reply = error_reply(status, str(error), *again)
        return versioned(reply, dataset)

    def _refused(self, headers: Headers) -> Reply | None:
        if not self._tokens:
            return error_reply(403, "writes are disabled: start the server with a token (--token-file)")
        if self._tokens.admits(bearer(headers.get(b"authorization", b"").decode("latin-1"))):
            return None
        return error_reply(401, "a token is needed: Authorization: Bearer TOKEN", (b"www-authenticate", b"Bearer"))

    async def _reply(self, dataset: DataSet, scope: Scope, receive: Receive) -> Reply:
        async with counted_body(Incoming(scope, receive), self._limit) as body:
            key = self._key(dataset, scope, body)
            return self._done.known(key) or await self._done_anew(dataset, scope, body, key)

    async def _done_anew(self, dataset: DataSet, scope: Scope, body: bytes, key: RetryKey | None) -> Reply:
        # Checked before the body is parsed, to refuse cheaply, and again in `_make` with the lock, which decides.
        require_conditions(dataset, scope, self._addressing(scope["scheme"], dict(scope["headers"])))
        # Parsed bodies take many times their size, so few are parsed at a time.
        async with self._turns:
            request = self._request(dataset, scope, body)
            operations = await asyncio.to_thread(_parsed, request)
        make = partial(self._make, dataset, scope, operations, key)
        if key is None:
            return await make()
        # The same request may have been under way while this one was parsed, or still be.
        known = self._done.known(key)
        return known if known is not None else await self._under_way.join(key, make)

    async def _make(
        self, dataset: DataSet, scope: Scope, operations: Sequence[Operation], key: RetryKey | None
    ) -> Reply:
        """Apply the change; its conditions are checked with the data set's lock."""
        base = self._addressing(scope["scheme"], dict(scope["headers"]))
        written = await self._writers.write(dataset, operations, lambda: require_conditions(dataset, scope, base))
        reply = _written_reply(written, dataset)
        if key is not None:
            self._done.remember(key, reply)
        return reply

    def _key(self, dataset: DataSet, scope: Scope, body: bytes) -> RetryKey | None:
        """The idempotency key of a request, with a digest of everything that has to be equal in a retry."""
        headers = dict(scope["headers"])
        header = headers.get(b"idempotency-key")
        owner = self._tokens.identity(bearer(headers.get(b"authorization", b"").decode("latin-1")))
        parts = dataset.name.encode(), scope["method"].encode(), scope["query_string"]
        kind = headers.get(b"content-type", b"").strip().lower()
        return read_key(None if header is None else header.decode("latin-1"), owner, *parts, kind, body)

    def _request(self, dataset: DataSet, scope: Scope, body: bytes) -> WriteRequest:
        headers = dict(scope["headers"])
        content_type = headers.get(b"content-type", b"").decode("latin-1")
        self._requests += 1
        try:
            text = served_text(body, content_type)
        except CharsetError as error:
            raise WriteRequestError(str(error)) from None
        return WriteRequest(
            scope["method"],
            _parameters(scope["query_string"]),
            media_type(content_type),
            text,
            dataset.style,
            self._addressing(scope["scheme"], headers),
            dataset.clock(),
            f"v{dataset.store.version}r{self._requests}",
        )


def _parsed(request: WriteRequest) -> list[Operation]:
    """The operations of a write, parsed within a deadline; DeadlineError."""
    load_parsers()
    with DEADLINES.within(SECONDS):
        return read_request(request)


def _parameters(query: bytes) -> dict[str, str]:
    try:
        pairs = parse_qsl(query.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=50)
    except ValueError:
        raise WriteRequestError("the address is not UTF-8 in percent signs, or has more than 50 parameters") from None
    parameters = dict(pairs)
    # Taking either of the two values would be a guess about what is to be changed.
    if len(parameters) < len(pairs):
        raise WriteRequestError("a parameter is given twice: give it once")
    return parameters


def _written_reply(written: WriteResult, dataset: DataSet) -> Reply:
    """The reply to a write, as JSON: numbers of changed facts and quads, and the version."""
    quads = {"added": len(written.quads.added), "removed": len(written.quads.removed)}
    facts = {"added": written.added, "removed": written.removed}
    body = json.dumps({"version": dataset.version.decode(), "facts": facts, "quads": quads}).encode()
    return Reply(200, [(b"content-type", b"application/json"), (b"cache-control", b"no-store")], body)
