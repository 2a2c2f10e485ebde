"""Requests of clients: a query to be registered, static data, and elements for a stream, read and checked."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyoxigraph as ox

from streamgauge.formats.batches import ElementBatch, Taken, count_of
from streamgauge.formats.bounds import SERVED, BoundError, check_turtle
from streamgauge.formats.canonical import to_triple
from streamgauge.formats.fields import FieldError, decode
from streamgauge.formats.lines import Advance
from streamgauge.formats.streams import Format, Reading, formats_by_media_type, stream_formats
from streamgauge.formats.syntaxes import charset_of, media_type
from streamgauge.model.element import StreamElement
from streamgauge.model.engine import Engine
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import Semantics
from streamgauge.model.terms import Triple
from streamgauge.query import detect, dialect_names, parse
from streamgauge.query.text import check_bounds
from streamgauge.semantics.profiles import profile
from streamgauge.servers.http.limits import document_turn
from streamgauge.servers.http.openapi import Json
from streamgauge.servers.queries.groups import Question
from streamgauge.servers.queries.limits import QueryLimitError, QueryLimits
from streamgauge.servers.queries.sessions import fixed, makes_triples, profile_for, refuse_removal


class RequestError(ValueError):
    """A request that cannot be read; the sentence names the field."""


@dataclass(frozen=True, slots=True)
class QueryRegistration:
    """A query as a client asks it: ``static`` is Turtle, ``semantics`` a profile's name or all fields, times in ms.

    ``advance`` ``wall`` lets time pass by the service's clock.
    """

    query: str
    dialect: str | None = None
    semantics: Semantics | str | None = None
    lateness: int | None = None
    t0: int | None = None
    engine: str | None = None
    static: str = ""
    advance: str | None = None


def number_of(name: str) -> int:
    """The number of a query that has no name of its own (``q7``), else 0."""
    return int(name[1:]) if name[:1] == "q" and name[1:].isdecimal() else 0


def read_registration(data: object) -> QueryRegistration:
    """The request of a JSON object; RequestError names the field."""
    if not isinstance(data, Mapping):
        raise RequestError("a query is asked by its text, or by a JSON object with the field query")
    try:
        plain = {name: value for name, value in data.items() if name != "semantics"}
        request = replace(decode(QueryRegistration, plain), semantics=_named(data.get("semantics")))
    except FieldError as error:
        raise RequestError(str(error)) from error
    for field, value, known in (("dialect", request.dialect, dialect_names()), ("advance", request.advance, ("wall",))):
        if value is not None and value not in known:
            raise RequestError(f"{field} is {value!r}: expected one of {', '.join(known)}")
    return request


def query_schema(engines: Sequence[str], profiles: Iterable[str]) -> Json:
    """The schema of a registration in JSON, for a service with these engines and semantics."""
    ms = {"type": "integer", "description": "ms"}
    text = {"type": "string", "description": "Continuous SPARQL: RSP-QL, C-SPARQL, CQELS-QL or SPARQLstream."}
    return {
        "type": "object",
        "required": ["query"],
        "properties": {
            "query": text,
            "dialect": {"type": "string"},
            "semantics": {"anyOf": [{"type": "string", "enum": [*profiles]}, {"type": "object"}]},
            "engine": {"type": "string", "enum": [*engines]},
            "static": {"type": "string", "description": "Turtle."},
            "lateness": ms,
            "t0": ms,
            "advance": {"type": "string", "enum": ["wall"]},
        },
    }


def question_of(
    name: str, request: QueryRegistration, query: ContinuousQuery, semantics: Semantics, engine: str
) -> Question:
    """A registration as a worker answers it; answers that are triples are a stream, by the query's name or its own."""
    output = (query.name or f"urn:streamgauge:answers:{name}") if makes_triples(query) else None
    return Question(request.query, query, semantics, engine, output, request.t0, request.advance == "wall")


def understand(request: QueryRegistration, engine: Engine, limits: QueryLimits) -> tuple[ContinuousQuery, Semantics]:
    """The query with its own static data, and its semantics; QueryError, RequestError or LimitError."""
    if len(request.query.encode()) > limits.query_text:
        raise QueryLimitError(f"the query is longer than {limits.query_text} bytes: ask something shorter")
    # Before parsing: the bounds are on nesting, too, which recursive parsers follow.
    check_bounds(request.query, SERVED)
    dialect = request.dialect or detect(request.query)
    query = parse(request.query, dialect).with_static(read_static(request.static, limits.static_triples))
    return query, _semantics(request, dialect, engine)


def read_static(text: str, limit: int) -> tuple[Triple, ...]:
    """The triples of Turtle or N-Triples text; RequestError names the line, LimitError when they are too many."""
    triples = list[Triple]()
    try:
        check_turtle(text)
        for quad in ox.parse(text, format=ox.RdfFormat.TURTLE):
            triples.append(to_triple(quad))
            # While parsing, so that a document that is too large is never in memory whole.
            if len(triples) > limit:
                raise QueryLimitError(f"more than {limit} static triples: bring fewer")
    except BoundError as error:
        raise RequestError(f"static: {error}") from error
    except SyntaxError as error:
        raise RequestError(f"static, line {error.lineno}: not Turtle: {error.msg}") from error
    return tuple(triples)


def _named(semantics: object) -> Semantics | str | None:
    if semantics is None or isinstance(semantics, str):
        return semantics
    if not isinstance(semantics, Mapping):
        raise RequestError(f"semantics is {semantics!r:.80}: expected a profile's name or an object of its fields")
    return decode(Semantics, semantics, "semantics")


def _semantics(request: QueryRegistration, dialect: str, engine: Engine) -> Semantics:
    wanted = request.semantics or profile_for(dialect, engine)
    semantics = profile(wanted) if isinstance(wanted, str) else wanted
    if request.lateness is not None:
        if request.lateness < 0:
            raise RequestError(f"lateness is {request.lateness}: expected ms, at least 0")
        semantics = replace(semantics, lateness=request.lateness)
    return semantics if request.t0 is None else fixed(semantics, request.t0)


_OF_NOW: Final = ("turtle", "rdf", "jsonld")
"""Formats whose elements are of now unless ``t`` is given, because a request names no time property."""

_ANY_LATENESS: Final = 2**53
"""Lateness is judged by each query, not by the reader."""


TOGETHER: Final = 64
"""Maximum elements of a body that a query processes at once; its limit of CPU time applies to that many.

``python -m benchmarks.service --parts queries`` measures it.
"""


def form_of(kind: str, form: str | None) -> Format:
    """The format of a body, by the name ``form`` or its media type; RequestError where no message has it."""
    media = media_type(kind)
    form_ = stream_formats().get(form) if form else formats_by_media_type().get(media)
    if form_ is None or form_.decoder is None:
        known = ", ".join(sorted(formats_by_media_type()))
        raise RequestError(f"elements come as one of {known}: {media or 'no content type'} is none (or name ?form=)")
    return form_


def read_items(
    body: bytes, kind: str, form: str | None, stream: str, time: str | None, now: Callable[[], int]
) -> Sequence[Taken]:
    """The elements and advances of a body, in columns if they are many and alike.

    ``kind`` is its media type, ``form`` the name of a format, which takes precedence.
    ``time`` is the time (ms, or ``now``) of all its elements; Turtle and N-Triples default to now. RequestError,
    FormatError and RefusedError name the mistake.
    """
    form_ = form_of(kind, form)
    assert form_.decoder is not None
    arrived = now() if time == "now" or (time is None and form_.name in _OF_NOW) else _milliseconds(time)
    reading = Reading(stream=stream, lateness=_ANY_LATENESS, charset=None if form_.binary else charset_of(kind))
    with document_turn(body, ox.RdfFormat.JSON_LD if form_.name == "jsonld" else None):
        items = form_.decoder(reading)(body, "body", arrived)
    for item in items:
        if isinstance(item, StreamElement):
            refuse_removal(item)
    return [*in_steps(items)]


def in_steps(items: Iterable[Taken]) -> Iterator[Taken]:
    """Items with batches cut to the size that a query processes at once."""
    for item in items:
        if isinstance(item, ElementBatch):
            yield from (item.part(at, min(at + TOGETHER, len(item))) for at in range(0, len(item), TOGETHER))
        else:
            yield item


def numbered(stream: str, items: Iterable[Taken], number: int) -> Iterator[Taken]:
    """Items as those of a stream, the elements numbered on from a number."""
    for item in items:
        match item:
            case ElementBatch():
                yield replace(item.numbered(number), stream=stream)
            case StreamElement():
                yield StreamElement(stream, item.time, number, item.added, item.removed, item.until)
            case _:
                yield item
        number += count_of((item,))


def elements_in(item: Taken) -> int:
    """How many elements an item is."""
    return 0 if isinstance(item, Advance) else count_of((item,))


def _milliseconds(time: str | None) -> int | None:
    if time is None:
        return None
    try:
        return int(time)
    except ValueError:
        raise RequestError(f"t is {time!r:.40}: expected whole ms, or now") from None
