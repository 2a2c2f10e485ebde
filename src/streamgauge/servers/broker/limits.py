"""The limits of a broker, each named by the error of a refused request; parsing of queries, updates and graphs.

The length of texts that a query computes is bounded statically, because the functions that compute them (in C) cannot
be interrupted. The engine of REGEX does not backtrack and takes linear time; a pattern with a back-reference has 0.05 s
(``sparql/regular.py``), so a query may have few of those, and none that is too large to compile
(``servers/http/limits.py``).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import uuid4

import pyoxigraph as ox

from streamgauge.formats.bounds import SERVED, check_rdf
from streamgauge.formats.canonical import to_triple
from streamgauge.formats.documents import FormatError
from streamgauge.formats.line_versions import without_versions
from streamgauge.formats.streams import parse_file
from streamgauge.formats.streams.format import Relabel
from streamgauge.formats.syntaxes import SENT, most_characters, reason, served_text
from streamgauge.incremental.budget import TooMuchError
from streamgauge.model import algebra as al
from streamgauge.model.fact import apart, in_graph, is_named
from streamgauge.model.mistake import MistakeError
from streamgauge.model.terms import Term, Triple
from streamgauge.query import parse_sparql
from streamgauge.query.traversal import every_pattern, expressions
from streamgauge.query.updates import GraphNames, UpdateContext, UpdateOperation, read_update
from streamgauge.servers.http.deadlines import DEADLINES
from streamgauge.servers.http.limits import document_turn, load_parsers, refused_patterns


@dataclass(frozen=True, slots=True)
class Limits:
    """All limits of a broker. *Visits* are facts and rows that an evaluation looks at; a stored row counts as eight.

    Requests: ``body`` bytes of one, ``connections`` open, ``query_text`` characters of a query, ``graph`` triples of a
    publication, ``term`` characters of a term, ``waiting`` publications of an identity, ``batch`` processed together,
    ``keys`` remembered of an identity, ``facts`` in all.

    Channels: ``channels`` of an identity, ``creations`` that wait to begin, ``subscribers`` of one. When a channel
    begins, its query has ``effort`` visits, ``seconds`` of CPU and ``growth`` bytes of the process, and its answer
    ``rows``; ``text`` characters may be computed for one value.

    Publications: ``change`` visits for one channel, plus 100 per triple (up to three times the base), plus 100 per
    triple beyond 10,000. ``changes`` visits for all channels together, in the same proportion, besides a share that
    each channel has of its own. Rules may derive or retract ``derived`` facts, and three more per triple beyond 10,000.
    The WHERE of an update has ``looks`` visits and ``where_seconds`` of CPU.

    Answers: ``kept`` notifications of a channel in ``kept_bytes``, and ``kept_total`` bytes for all channels of an
    identity, can be resumed from; a subscriber that is ``lag`` notifications behind is disconnected. ``question`` is
    the number of visits, and of rows, of a query of the SPARQL Protocol, ``answer`` the rows of SEPA's first message.
    """

    channels: int = 20_000
    query_text: int = 64 * 2**10
    rows: int = 2_000_000
    graph: int = 100_000
    facts: int = 20_000_000
    effort: int = 10_000_000
    seconds: float = 10.0
    growth: int = 512 * 2**20
    creations: int = 64
    change: int = 20_000
    changes: int = 500_000
    looks: int = 50_000
    where_seconds: float = 1.0
    question: int = 200_000
    answer: int = 100_000
    derived: int = 10_000
    term: int = 2**20
    text: int = 64 * 2**20
    waiting: int = 10_000
    batch: int = 256
    keys: int = 100_000
    subscribers: int = 10_000
    kept: int = 10_000
    kept_bytes: int = 16 * 2**20
    kept_total: int = 256 * 2**20
    lag: int = 5_000
    body: int = 32 * 2**20
    connections: int = 5_000


class LimitError(ValueError):
    """A request that exceeds a limit; the sentence names the limit."""


class BusyError(RuntimeError):
    """The broker is too busy at the moment; the request may be repeated."""


MAX_NAME: Final = 200
"""Characters of a channel's or subscriber's name."""


class BadNameError(MistakeError, ValueError):
    """A text that cannot be a name."""


class ReservedNameError(BadNameError):
    """A name that is reserved for the broker."""


def check_name(name: str, what: str) -> str:
    """The name, unchanged; BadNameError if it is invalid."""
    if not 0 < len(name) <= MAX_NAME or not name.isprintable():
        raise BadNameError(f"{what} has a name of 1 to {MAX_NAME} printable characters")
    return name


def read_query(text: str, limits: Limits) -> al.QueryForm:
    """The parsed query of a channel; QueryError, LimitError if parsing or evaluating it would cost too much."""
    if len(text) > limits.query_text:
        raise LimitError(f"a query of more than {limits.query_text} characters: write a shorter one")
    load_parsers()
    try:
        with DEADLINES.within(limits.seconds, limits.growth):
            form = parse_sparql(text, bounds=SERVED)
            _check_texts(form, limits)
            return form
    except TooMuchError as error:
        raise LimitError(f"{error}: write a shorter query") from error
    except RecursionError:
        raise too_deep() from None


def too_deep() -> LimitError:
    """The error for a query whose evaluation exceeds the recursion limit."""
    return LimitError("the query is nested too deeply to be evaluated: write it flatter")


_WIDER: Final = {"UCASE": 3, "LCASE": 3, "ENCODE_FOR_URI": 12}
"""The factor by which functions may lengthen a text: some letters have up to three capitals, %-encoding up to 12."""


def _check_texts(form: al.QueryForm, limits: Limits) -> None:
    """LimitError for an expression whose value may be longer than ``limits.text``, and for costly regular expressions.

    The upper bound assumes that all terms have ``limits.term`` characters: CONCAT(?a, ?a) of a term of 2^20 may have
    2^21, and 25 BINDs in a row that double a text in this way 2^45.
    """
    definitions: dict[str, list[al.Expression]] = {}
    expressions_: list[al.Expression] = []
    for pattern in every_pattern(form.pattern):
        expressions_ += expressions(pattern)
        if isinstance(pattern, al.Extend):
            # By name over the whole query, scopes aside: too large a bound only refuses what may be large.
            definitions.setdefault(pattern.variable.name, []).append(pattern.expression)
    if refused := refused_patterns(form):
        raise LimitError(refused)
    lengths: dict[str, int] = {}
    for expression in expressions_:
        if _length(expression, definitions, lengths, limits.term) > limits.text:
            raise LimitError(f"a computed text may have more than {limits.text} characters: CONCAT or REPLACE less")


def _length(
    expression: al.Expression, definitions: Mapping[str, list[al.Expression]], lengths: dict[str, int], term: int
) -> int:
    """An upper bound of the characters of an expression's value; ``lengths`` caches those of variables."""
    match expression:
        case al.Var(name=name):
            if name not in lengths:
                # A variable that is defined by itself (in another scope) would recurse for ever without a first value.
                lengths[name] = term
                lengths[name] = max(
                    (_length(definition, definitions, lengths, term) for definition in definitions.get(name, ())),
                    default=term,
                )
            return lengths[name]
        case al.Call(operator=operator, arguments=arguments):
            lengths_ = [_length(argument, definitions, lengths, term) for argument in arguments]
            return _called(operator.upper(), lengths_)
        case str():
            return len(expression)
        case _:
            return term


def _called(operator: str, lengths: list[int]) -> int:
    if operator == "CONCAT":
        return sum(lengths)
    if operator == "REPLACE":
        text, _, replacement, *_ = lengths
        # An empty match at every character, and one at the end: each puts the replacement in, and the characters stay.
        return (text + 1) * (replacement + 1)
    return _WIDER.get(operator, 1) * max(lengths, default=0)


def read_changes(
    text: str, limits: Limits | None = None, using: GraphNames | None = None, now: Term | None = None
) -> list[UpdateOperation]:
    """The operations of a SPARQL Update over the graphs ``using`` at the time ``now``; QueryError, LimitError."""
    limits = limits or Limits()
    names: dict[str, str] = {}
    start = uuid4().hex
    # A label of one request must not name the blank node of another.
    context = UpdateContext(lambda name: names.setdefault(name, f"_:{start}b{len(names)}"), True, using, now)
    load_parsers()
    try:
        with DEADLINES.within(limits.seconds, limits.growth):
            operations = read_update(text, context)
    except TooMuchError as error:
        raise LimitError(f"{error}: write a shorter update") from error
    for triple in (triple for operation in operations for triple in (*operation.added, *operation.removed)):
        if max(map(len, triple)) > limits.term:
            raise _long_term(triple, limits)
    return operations


def _long_term(triple: Triple, limits: Limits) -> LimitError:
    return LimitError(f"a term of more than {limits.term} characters: {max(triple, key=len)[:40]}...")


DENSE: Final = 12_000
BYTES_EACH: Final = 8
"""Triples that any text may have, and bytes per further triple: ``(1 1 1)`` in Turtle has a triple for each byte."""


class GraphError(ValueError):
    """An invalid graph; the sentence says where."""


class MediaTypeError(ValueError):
    """An unsupported media type; the sentence lists the supported ones."""


def read_graph(body: bytes, kind: str, limits: Limits) -> tuple[Triple, ...]:
    """The triples of a graph, with fresh blank nodes; GraphError, MediaTypeError, LimitError."""
    media = kind.partition(";")[0].strip().lower()
    syntax = SENT.get(media)
    if syntax is None:
        raise MediaTypeError(f"{media or 'no content type'}: send a graph as one of {', '.join(SENT)}")
    try:
        # The charset of the media type, which pyoxigraph does not know.
        body = served_text(body, kind)
        check_rdf(body, syntax, SERVED)
        with document_turn(body, syntax):
            return tuple(_triples(body, syntax, limits))
    except SyntaxError as error:
        line = "" if error.lineno is None else f"line {error.lineno}: "
        raise GraphError(f"{line}not {media}: {reason(error)}") from error
    except (ValueError, OSError) as error:
        # Both are ValueErrors of our own that come through the generator, with their sentences complete.
        if isinstance(error, GraphError | LimitError):
            raise
        raise GraphError(f"not {media}: {error}") from error


def _triples(body: bytes, syntax: ox.RdfFormat, limits: Limits) -> Iterator[Triple]:
    # Prefixes and nesting let a short text expand to many triples or long terms; both are bounded by its own length.
    limit, capacity = min(limits.graph, DENSE + len(body) // BYTES_EACH), most_characters(len(body))
    one = dict[str, str]().setdefault  # not sys.intern: terms of a refused graph would stay
    for count, quad in enumerate(ox.parse(without_versions(body, syntax), format=syntax, rename_blank_nodes=True), 1):
        if count > limit and limit == limits.graph:
            raise LimitError(f"a publication of more than {limit} triples: publish it in parts")
        if count > limit:
            raise LimitError(
                f"more than {limit} triples in a text of {len(body)} bytes: publish them in parts, or as N-Triples"
            )
        subject, predicate, end = _fact(quad)
        triple = one(subject, subject), one(predicate, predicate), one(end, end)
        characters = len(subject) + len(predicate) + len(end)
        capacity -= characters
        # The sum first: it is above the limit for nearly no triple, and spares the three lengths.
        if characters > limits.term and max(map(len, triple)) > limits.term:
            raise _long_term(triple, limits)
        if capacity < 0:
            raise too_wide(len(body))
        yield triple


def too_wide(size: int) -> LimitError:
    """The error for a text of ``size`` bytes whose terms have too many characters in total."""
    return LimitError(
        f"the terms of its triples have more than {most_characters(size)} characters in all: publish them in parts, or "
        "shorten what each of them repeats"
    )


def check_width(triples: Iterable[Triple]) -> None:
    """LimitError for triples of a SPARQL Update whose terms have too many characters in total."""
    if sum(len(term) for triple in triples for term in triple) > most_characters(0):
        raise too_wide(0)


def read_named_graph(body: bytes, kind: str, limits: Limits) -> tuple[Triple, ...]:
    """The triples of a graph to be deleted; GraphError also for a blank node, which would match nothing."""
    facts = read_graph(body, kind, limits)
    terms = (term for fact in facts for term in (apart(fact)[1] if is_named(fact[0]) else fact))
    if any(term.startswith("_:") or (term.startswith("<<") and "_:" in term) for term in terms):
        raise GraphError("a blank node cannot identify data to delete: use SPARQL Update, DELETE WHERE { ... }")
    return facts


def _fact(quad: ox.Quad) -> Triple:
    """A fact, with the name of its graph if it has one."""
    if quad.graph_name == ox.DefaultGraph():
        return to_triple(quad)
    if not isinstance(quad.graph_name, ox.NamedNode):
        raise GraphError(f"a graph with the blank node {quad.graph_name} for a name: name it by an IRI")
    return in_graph(str(quad.graph_name), to_triple(quad))


def read_files(paths: Sequence[Path]) -> Iterator[Triple]:
    """The facts of RDF files, including named graphs, with distinct blank nodes per file; FormatError."""
    for number, path in enumerate(paths):
        # The same label in two files means two nodes (RDF 1.1 Concepts, 3.4).
        relabel = Relabel(f"s{number}x" if number else "s")
        for quad in parse_file(path):
            triple = relabel.triple(quad)
            if isinstance(quad.graph_name, ox.NamedNode):
                yield in_graph(str(quad.graph_name), triple)
            elif quad.graph_name == ox.DefaultGraph():
                yield triple
            else:
                raise FormatError(
                    f"{path}: a graph with the blank node {quad.graph_name} for a name: name it by an IRI"
                )
