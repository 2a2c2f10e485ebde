"""Writes as HTTP requests: a method, parameters and a body become operations."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pyoxigraph as ox

from streamgauge.formats.bounds import check_rdf, read_json
from streamgauge.formats.streams.format import Relabel
from streamgauge.model.algebra import TriplePattern, Var
from streamgauge.model.fact import Fact
from streamgauge.model.terms import Term
from streamgauge.query.updates import UpdateOperation, read_update
from streamgauge.servers.fragments import DEFAULT, Quad
from streamgauge.servers.fragments.annotations import method as method_of
from streamgauge.servers.fragments.labels import VOCABULARIES, Border, Label, Style
from streamgauge.servers.fragments.pages.facts import VALIDITY_PARAMETERS, TripleMatch, Validity, read_time, validity
from streamgauge.servers.fragments.pages.fragment_request import unskolemised
from streamgauge.servers.fragments.pages.selection import read_node
from streamgauge.servers.fragments.writes.draft import Add, Expire, Modify, Operation, Remove, Replace

PLACES: Final = ("subject", "predicate", "object")
STYLES: Final = ("method", "label", "vocabulary", "border")
"""Parameters that say how an annotated body is annotated."""

_KNOWN: Final = {
    "POST": {*VALIDITY_PARAMETERS, *STYLES},
    "PUT": {*PLACES, *VALIDITY_PARAMETERS, *STYLES},
    "DELETE": {*PLACES, "at"},
    "PATCH": {*VALIDITY_PARAMETERS, "at"},
}
_TIMES: Final = {"add": VALIDITY_PARAMETERS, "remove": (), "replace": ("by", *VALIDITY_PARAMETERS), "expire": ("at",)}
"""The members that may stand beside an operation in JSON."""

_SYNTAXES: Final = (
    ox.RdfFormat.TURTLE,
    ox.RdfFormat.N_TRIPLES,
    ox.RdfFormat.N_QUADS,
    ox.RdfFormat.TRIG,
    ox.RdfFormat.JSON_LD,
)
_RDF: Final = "text/turtle, application/n-triples, application/n-quads, application/trig, application/ld+json"
_UPDATE: Final = "application/sparql-update"
_SHAPE: Final = '[{"add": TURTLE, "until": TIME}, {"remove" | "expire": PATTERN}, {"replace": PATTERN, "by": TURTLE}]'


OPERATIONS: Final = 1_000
"""Operations that one request may have."""


class WriteRequestError(ValueError):
    """A write that cannot be understood; the sentence says what to send."""


class WriteMediaTypeError(ValueError):
    """A body of a kind that is not taken; the sentence lists those that are."""


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """A write as it came; ``base`` is the server's address, ``fresh`` the beginning of new blank nodes' names."""

    method: str
    parameters: Mapping[str, str]
    media_type: str
    body: bytes
    style: Style
    base: str
    now: int
    fresh: str


def read_request(request: WriteRequest) -> list[Operation]:
    """The operations of a write.

    WriteRequestError, WriteMediaTypeError, TermError, ValidityError, QueryError, LabelError say what is wrong.
    """
    unknown = request.parameters.keys() - _KNOWN[request.method]
    if unknown:
        known = ", ".join(sorted(_KNOWN[request.method]))
        raise WriteRequestError(f"{sorted(unknown)[0]:.40}: not a parameter of {request.method}, which has {known}")
    match request.method:
        case "POST":
            return [Add(_facts(request))]
        case "PUT":
            return [Replace(_wanted(request.parameters, request.base), _facts(request))]
        case "DELETE":
            if request.body:
                raise WriteRequestError("DELETE takes no body: name the pattern in the address, or send a PATCH")
            return [_ending(_wanted(request.parameters, request.base), request.parameters.get("at"), request.now)]
    return _patch(request)


def _patch(request: WriteRequest) -> list[Operation]:
    if request.media_type == _UPDATE:
        text = _text(request.body)
        given = validity(request.parameters, request.style.label, request.now)
        update = [_local(each, request.base) for each in read_update(text, _Fresh(request.fresh))]
        return [Modify(each, request.now, given.initial, given.final) for each in update]
    if request.media_type != "application/json":
        raise WriteMediaTypeError(
            f"{request.media_type or 'no content type'}: PATCH takes {_UPDATE} or application/json"
        )
    try:
        data = read_json(_text(request.body))
    except WriteRequestError:
        raise
    except ValueError as error:
        raise WriteRequestError(f"not JSON: {error}"[:200]) from None
    if not isinstance(data, list) or not all(isinstance(each, dict) for each in data) or len(data) > OPERATIONS:
        raise WriteRequestError(f"expected a list of at most {OPERATIONS} operations: {_SHAPE}")
    return [_operation(request, each, number) for number, each in enumerate(data)]


def _operation(request: WriteRequest, given: dict[str, Any], number: int) -> Operation:
    """One of a list in JSON; times beside it go before those of the address."""
    here = f"operation {number + 1}"
    kind = next((each for each in _TIMES if each in given), None)
    if kind is None or given.keys() - {kind, *_TIMES[kind]}:
        raise WriteRequestError(f"{here}: expected one of {_SHAPE}")
    own: dict[str, str] = {name: str(given[name]) for name in VALIDITY_PARAMETERS if name in given}
    times = own or {name: value for name, value in request.parameters.items() if name in VALIDITY_PARAMETERS}
    part = replace(request, parameters=times, media_type="text/turtle", fresh=f"{request.fresh}o{number}")
    match kind:
        case "add":
            return Add(_facts(replace(part, body=_string(given["add"], here))))
        case "replace":
            facts = _facts(replace(part, body=_string(given.get("by"), here)))
            return Replace(_pattern(given["replace"], here, request.base), facts)
        case "remove":
            return Remove([_pattern(given["remove"], here, request.base)])
    at = str(given.get("at", request.parameters.get("at", "now")))
    return _ending(_pattern(given["expire"], here, request.base), at, request.now)


def _string(value: object, here: str) -> bytes:
    if not isinstance(value, str):
        raise WriteRequestError(f"{here}: facts are Turtle text: {_SHAPE}")
    try:
        return value.encode()
    except UnicodeEncodeError:
        raise WriteRequestError(f"{here}: facts are not text that UTF-8 can write") from None


def _pattern(given: object, here: str, base: str) -> TripleMatch:
    if not isinstance(given, dict) or given.keys() - set(PLACES) or not all(isinstance(v, str) for v in given.values()):
        raise WriteRequestError(f'{here}: a pattern is {{"subject": TERM, "predicate": TERM, "object": TERM}}')
    return _wanted(given, base)


def _ending(wanted: TripleMatch, at: str | None, now: int) -> Operation:
    return Remove([wanted]) if at is None else Expire([wanted], read_time(at, now))


def _wanted(given: Mapping[str, str], base: str) -> TripleMatch:
    """A pattern with at least one term; variables and nothing stand for any."""
    subject, predicate, object_ = (_place(given.get(name, ""), base) for name in PLACES)
    if subject is None and predicate is None and object_ is None:
        raise WriteRequestError("this would touch every fact: give a subject, predicate or object")
    return subject, predicate, object_


def _place(text: str, base: str) -> Term | None:
    node = unskolemised(read_node(text), base)
    return None if isinstance(node, Var) else node


def _facts(request: WriteRequest) -> list[Fact]:
    """The facts of a body: as it is annotated, or all with the validity that the parameters say."""
    given, style = request.parameters, request.style
    quads = list(_quads(request))
    if any(name in given for name in STYLES):
        return method_of(given.get("method", style.method)).facts(quads, _style(given, style))
    named = next((quad for quad in quads if quad[3] != DEFAULT), None)
    if named is not None:
        raise WriteRequestError(
            f"{named[3]:.80}: facts have no graph; if graphs are how they are annotated, say ?method=graphs"
        )
    said: Validity = validity(given, style.label, request.now)
    return said.facts(quad[:3] for quad in quads)


def _style(given: Mapping[str, str], own: Style) -> Style:
    try:
        label = Label(given.get("label", own.label))
        border = Border(given.get("border", own.border))
        vocabulary = VOCABULARIES[given["vocabulary"]] if "vocabulary" in given else own.vocabulary
    except (ValueError, KeyError) as error:
        choices = f"labels {', '.join(Label)}; borders {', '.join(Border)}; vocabularies {', '.join(VOCABULARIES)}"
        raise WriteRequestError(f"{error}: there are {choices}"[:300]) from None
    return Style(given.get("method", own.method), label, vocabulary, own.grouped, border, own.template)


def _quads(request: WriteRequest) -> Iterator[Quad]:
    """The quads of an RDF body, with the server's own names of blank nodes read back."""
    syntax = ox.RdfFormat.from_media_type(request.media_type)
    if syntax not in _SYNTAXES:
        raise WriteMediaTypeError(f"{request.media_type or 'no content type'}: facts come as one of {_RDF}")
    relabel, base = Relabel(request.fresh), request.base
    try:
        check_rdf(request.body, syntax)
        for quad in ox.parse(request.body, format=syntax):
            graph = DEFAULT if isinstance(quad.graph_name, ox.DefaultGraph) else relabel.term(quad.graph_name)
            s, p, o = relabel.triple(quad)
            yield unskolemised(s, base), p, unskolemised(o, base), unskolemised(graph, base)
    except (SyntaxError, ValueError) as error:
        raise WriteRequestError(f"not {request.media_type}: {error}"[:300]) from None


class _Fresh:
    """Blank nodes of an update, by the names in it."""

    def __init__(self, start: str) -> None:
        self._start, self._known = start, dict[str, Term]()

    def __call__(self, name: str) -> Term:
        return self._known.setdefault(name, f"_:{self._start}b{len(self._known)}")


def _text(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise WriteRequestError(f"not UTF-8 text: {error.reason} at byte {error.start}") from None


def _local(operation: UpdateOperation, base: str) -> UpdateOperation:
    """The operation with blank nodes for the server's names of them."""

    def local(patterns: Sequence[TriplePattern]) -> tuple[TriplePattern, ...]:
        return tuple(
            replace(each, subject=unskolemised(each.subject, base), object=unskolemised(each.object, base))
            for each in patterns
        )

    return replace(
        operation, where=local(operation.where), delete=local(operation.delete), insert=local(operation.insert)
    )
