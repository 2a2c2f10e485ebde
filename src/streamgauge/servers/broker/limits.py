"""The limits of a broker, beyond which a request is refused by name; queries, updates and graphs read within them.

How long the texts are that a query computes is bounded before it is asked, for what computes them cannot be stopped.
The engine of REGEX does not backtrack, and takes time in proportion to the text; a pattern with a back-reference has
0.05 s (``sparql/regular.py``), so a query may have few of those, and none that is too large to be compiled
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
    """Bounds. ``graph`` is the most triples of one publication, ``facts`` the most that are
    published and not deleted, ``waiting`` the most publications that wait, ``batch``
    the most that are taken together; ``kept`` notifications (of ``kept_bytes``; ``kept_total`` for all
    channels of an identity) of a channel can be resumed from, and a
    subscriber that is ``lag`` behind is left; ``rows`` is the most of a channel's answer when it is created. ``body``
    is the most bytes of one request, ``connections`` the most at once, ``subscribers`` the most of one channel.
    ``effort`` is how many facts and rows are looked at, at most, to answer a query when its channel begins (a row that
    is kept counts as eight), ``seconds`` how long its evaluation computes then, ``growth`` how many bytes the process
    grows by meanwhile, ``creations`` how many channels wait to begin. ``change`` is how many are looked at for one
    channel because of a publication, with 100 more for each of its triples, three times as many at most, and 100 for
    each triple beyond 10,000; ``changes`` is how many all channels together look at, beside a part of as many that each
    has for itself, in the same proportion more; ``looks`` how many WHERE of an update looks at, for ``where_seconds``
    of CPU at most; ``question`` how many a query of the SPARQL protocol looks at, and the rows of its answer;
    ``derived`` how often, at most, one publication lets rules derive or lose something, three times more for each
    triple beyond 10,000.
    ``term`` is the most characters of a published term, ``text`` of what a query computes. ``answer`` is the most rows
    of the answer that a message of SEPA's begins with.
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
    """Something beyond a limit; the sentence names it."""


class BusyError(RuntimeError):
    """No more is taken just now; come again."""


LONGEST_NAME: Final = 200
"""Characters of a channel's or subscriber's name."""


class BadNameError(MistakeError, ValueError):
    """A text that cannot be a name."""


class ReservedNameError(BadNameError):
    """A name that the broker gives by itself."""


def check_name(name: str, what: str) -> str:
    """The name; BadNameError for one that is none."""
    if not 0 < len(name) <= LONGEST_NAME or not name.isprintable():
        raise BadNameError(f"{what} has a name of 1 to {LONGEST_NAME} printable characters")
    return name


def read_query(text: str, limits: Limits) -> al.QueryForm:
    """The query of a channel; QueryError, or LimitError where reading or answering it costs too much."""
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
    """The error for a query whose evaluation would call itself too often."""
    return LimitError("the query is nested too deeply to be evaluated: write it flatter")


_WIDER: Final = {"UCASE": 3, "LCASE": 3, "ENCODE_FOR_URI": 12}
"""How much longer a text may become."""


def _check_texts(form: al.QueryForm, limits: Limits) -> None:
    """LimitError for an expression whose value may be longer than ``limits.text``, of terms within ``limits.term``.

    Also for patterns of regular expressions that cost too much.
    """
    definitions: dict[str, list[al.Expression]] = {}
    expressions_: list[al.Expression] = []
    for pattern in every_pattern(form.pattern):
        expressions_ += expressions(pattern)
        if isinstance(pattern, al.Extend):
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
    """The most characters that a value has; those of variables are remembered."""
    match expression:
        case al.Var(name=name):
            if name not in lengths:
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
        return (text + 1) * (replacement + 1)
    return _WIDER.get(operator, 1) * max(lengths, default=0)


def read_changes(
    text: str, limits: Limits | None = None, using: GraphNames | None = None, now: Term | None = None
) -> list[UpdateOperation]:
    """The operations of a SPARQL Update over the graphs ``using`` at the time ``now``; QueryError, LimitError.

    LimitError too when it takes longer than ``limits`` say to read it.
    """
    limits = limits or Limits()
    names: dict[str, str] = {}
    start = uuid4().hex
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
"""Triples of any text, and bytes of a text for each one more: lists of digits have a triple for each byte."""


class GraphError(ValueError):
    """A graph that cannot be read; the sentence says where."""


class MediaTypeError(ValueError):
    """A media type that is not read here; the sentence names those that are."""


def read_graph(body: bytes, kind: str, limits: Limits) -> tuple[Triple, ...]:
    """The triples of a graph; its blank nodes are new ones. GraphError, MediaTypeError, LimitError."""
    media = kind.partition(";")[0].strip().lower()
    syntax = SENT.get(media)
    if syntax is None:
        raise MediaTypeError(f"a graph comes as one of {', '.join(SENT)}: {media or 'no content type'} is none")
    try:
        body = served_text(body, kind)
        check_rdf(body, syntax, SERVED)
        with document_turn(body, syntax):
            return tuple(_triples(body, syntax, limits))
    except SyntaxError as error:
        line = "" if error.lineno is None else f"line {error.lineno}: "
        raise GraphError(f"{line}not {media}: {reason(error)}") from error
    except (ValueError, OSError) as error:
        if isinstance(error, GraphError | LimitError):
            raise
        raise GraphError(f"not {media}: {error}") from error


def _triples(body: bytes, syntax: ox.RdfFormat, limits: Limits) -> Iterator[Triple]:
    limit, capacity = min(limits.graph, DENSE + len(body) // BYTES_EACH), most_characters(len(body))
    one = dict[str, str]().setdefault  # those of a graph that is refused are not to stay in the table of ``intern``
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
        if characters > limits.term and max(map(len, triple)) > limits.term:
            raise _long_term(triple, limits)
        if capacity < 0:
            raise too_wide(len(body))
        yield triple


def too_wide(size: int) -> LimitError:
    """The error for triples of a text of so many bytes whose terms have too many characters in all."""
    return LimitError(
        f"the terms of its triples have more than {most_characters(size)} characters in all: publish them in parts, or "
        "shorten what each of them repeats"
    )


def check_width(triples: Iterable[Triple]) -> None:
    """LimitError for triples of a SPARQL Update whose terms have too many characters in all."""
    if sum(len(term) for triple in triples for term in triple) > most_characters(0):
        raise too_wide(0)


def read_named_graph(body: bytes, kind: str, limits: Limits) -> tuple[Triple, ...]:
    """The triples of a graph that is deleted; GraphError also for a blank node, which would name nothing there."""
    facts = read_graph(body, kind, limits)
    terms = (term for fact in facts for term in (apart(fact)[1] if is_named(fact[0]) else fact))
    if any(term.startswith("_:") or (term.startswith("<<") and "_:" in term) for term in terms):
        raise GraphError("a blank node names nothing here: delete it by SPARQL Update, DELETE WHERE { ... }")
    return facts


def _fact(quad: ox.Quad) -> Triple:
    """A fact, with its graph where that has a name."""
    if quad.graph_name == ox.DefaultGraph():
        return to_triple(quad)
    if not isinstance(quad.graph_name, ox.NamedNode):
        raise GraphError(f"a graph with the blank node {quad.graph_name} for a name: name it by an IRI")
    return in_graph(str(quad.graph_name), to_triple(quad))


def read_files(paths: Sequence[Path]) -> Iterator[Triple]:
    """The facts of RDF files, those of named graphs in their graphs; blank nodes of each file are its own.

    FormatError names file and line.
    """
    for number, path in enumerate(paths):
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
