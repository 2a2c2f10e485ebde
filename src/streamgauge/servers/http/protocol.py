"""Requests of the SPARQL 1.1 Protocol (W3C Recommendation, 2013): query by GET, both by a form or directly by POST."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias
from urllib.parse import parse_qsl

import pyoxigraph as ox

from streamgauge.formats.results import MEDIA_TYPE as JSON
from streamgauge.formats.syntaxes import SENT, media_type
from streamgauge.model.mistake import MistakeError
from streamgauge.model.terms import Term
from streamgauge.query.updates import GraphNames
from streamgauge.servers.http.headers import weights

Kind: TypeAlias = Literal["query", "update"]

FORM: Final = "application/x-www-form-urlencoded"
MAX_PARAMETERS: Final = 1_000
"""Parameters of a request, those that name graphs included."""

_GRAPHS: Final[Mapping[Kind, tuple[str, str]]] = {
    "query": ("default-graph-uri", "named-graph-uri"),
    "update": ("using-graph-uri", "using-named-graph-uri"),
}
_PASSED: Final = {"access_token", "format", "output", "results"}
"""Parameters that are ignored here: the token, read by ``access``, and what clients of Virtuoso or Fuseki send as a
substitute for Accept, which alone decides the format."""


class ProtocolError(MistakeError, ValueError):
    """A request that breaks the protocol; the sentence says what to send."""


class ProtocolTypeError(ProtocolError):
    """A body of an unsupported media type; the sentence lists the supported ones."""


@dataclass(frozen=True, slots=True)
class ProtocolRequest:
    """The text of a query or update, and the graphs that the request names beside it."""

    text: str
    graphs: GraphNames | None


def media_types(kind: Kind) -> tuple[str, str]:
    """The media types of a body: the text itself, or a form."""
    return f"application/sparql-{kind}", FORM


def read_protocol(kind: Kind, address: str, content_type: str = "", body: str | None = None) -> ProtocolRequest:
    """The operation that a request names in its query string or its body (``None`` for a GET); ProtocolError."""
    parameters = _parameters(address)
    if body is None:
        return _request(kind, parameters)
    direct, form = media_types(kind)
    if media_type(content_type) == form:
        return _request(kind, [*parameters, *_parameters(body)])
    if media_type(content_type) != direct:
        what = media_type(content_type) or "no content type"
        raise ProtocolTypeError(f"{what}: send {direct}, or {form} with {kind}=")
    # A direct POST may name only graphs in its address (SPARQL 1.1 Protocol, 2.1.3 and 2.2.2). Taking either of two
    # texts would run an operation that the client may not have meant.
    if any(name == kind for name, _ in parameters):
        raise ProtocolError(f"{kind}= in the address and a body: send one of them")
    return _request(kind, [*parameters, (kind, body)])


def _parameters(text: str) -> list[tuple[str, str]]:
    try:
        # Strict, because the default replaces bytes that are not UTF-8, and the query that then runs is not the one
        # that was sent. Blank values are kept so that an empty query= counts as one that was given.
        return parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=MAX_PARAMETERS)
    except ValueError:
        raise ProtocolError(f"not a form in UTF-8 with at most {MAX_PARAMETERS} parameters") from None


def _request(kind: Kind, parameters: Iterable[tuple[str, str]]) -> ProtocolRequest:
    values: dict[str, list[str]] = {}
    for name, value in parameters:
        values.setdefault(name, []).append(value)
    default, named = _GRAPHS[kind]
    # A parameter that is ignored, such as a misspelt default-graph-uri, would silently ask the wrong graphs.
    if unknown := sorted(values.keys() - {kind, default, named} - _PASSED):
        article = "an" if kind == "update" else "a"
        raise ProtocolError(
            f"{unknown[0]:.40}: not a parameter of {article} {kind}, which has {kind}, {default}, {named}"
        )
    texts = values.get(kind, [])
    if len(texts) != 1:
        raise ProtocolError(f"{kind}= is given {len(texts)} times: give it once")
    # None keeps the FROM or USING clauses of the text; graphs in the request override them (2.1.4, 2.2.3).
    if default not in values and named not in values:
        return ProtocolRequest(texts[0], None)
    return ProtocolRequest(texts[0], GraphNames(_iris(values.get(default, ())), _iris(values.get(named, ()))))


def _iris(texts: Iterable[str]) -> tuple[Term, ...]:
    try:
        # pyoxigraph checks the syntax of RFC 3987 and refuses relative references, as SPARQL 1.1 Protocol wants
        # absolute ones.
        return tuple(str(ox.NamedNode(text)) for text in texts)
    except ValueError as error:
        raise ProtocolError(f"a graph's name is an absolute IRI: {error}") from None


RESULTS: Final = {
    JSON: ox.QueryResultsFormat.JSON,
    "application/json": ox.QueryResultsFormat.JSON,
    "application/sparql-results+xml": ox.QueryResultsFormat.XML,
    "application/xml": ox.QueryResultsFormat.XML,
    "text/csv": ox.QueryResultsFormat.CSV,
    "text/tab-separated-values": ox.QueryResultsFormat.TSV,
}
"""Formats of rows and of booleans by media type, the first where a client takes any."""

TRIPLES: Final = {
    media_type: form for media_type, form in SENT.items() if form not in (ox.RdfFormat.TRIG, ox.RdfFormat.N_QUADS)
}
"""Formats of triples by media type, the first where a client takes any."""


def chosen(accept: str, formats: Iterable[str]) -> str | None:
    """The offered media type that an Accept header prefers, ``None`` if it accepts none of them (RFC 9110, 12.5.1)."""
    wanted = dict(weights(accept or "*/*"))
    names = list(formats)

    def weight(name: str) -> float:
        # The most specific range that covers a type decides, even where a wider one weighs more.
        ranges = (name, f"{name.partition('/')[0]}/*", "*/*")
        return next((wanted[range_] for range_ in ranges if range_ in wanted), 0.0)

    best = max(names, key=lambda name: (weight(name), -names.index(name)))
    return best if weight(best) > 0 else None
