"""Continuous queries by hypothesis: every grammar corner of ``texts``, every window kind, several windows, timestamp().

``continuous()`` draws a ContinuousQuery in the form that a text parses to; ``can_say(query, dialect)`` and
``kept(query, dialect)`` state, apart from the dialects' code, which can print it and what parses back.
"""

import re
from collections.abc import Callable
from dataclasses import replace

from hypothesis import strategies as st

from streamgauge.model import algebra as al
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.semantics import R2S
from streamgauge.query import parse_sparql
from streamgauge.query.graphs import reads, renamed
from streamgauge.query.merged import with_named_windows
from streamgauge.query.printer import sparql
from streamgauge.query.stamps import uses_timestamp
from streamgauge.query.traversal import every_pattern, parts, with_pattern
from tests.query.texts import PREFIXES, QUERIES
from tests.sparql.draw import OPERATORS, queries

NAMES = ("http://e/w", "http://e/v?x=1&y", "urn:w:3")
STREAMS = ("http://e/s", "http://e/t")
TEXTS = tuple(text for text in QUERIES if "GRAPH" not in text)
FORMS = tuple(parse_sparql(PREFIXES + text) for text in TEXTS)

_lengths = (1000, 5000, 60_000, 5_400_000, 86_400_000)
_size = st.one_of(st.integers(1, 5), st.sampled_from(_lengths), st.integers(1, 10**9))
windows = st.one_of(
    st.builds(Window, _size, _size),
    st.builds(Window, _size, st.just(1)),
    _size.map(lambda size: Window(size, size)),
    st.builds(Window, _size, _size, st.just("count")),
    _size.map(lambda size: Window(size, size, "count")),
    _size.map(lambda size: Window(size, 1, "count")),
    st.one_of(st.just(1), _size).map(lambda slide: Window(slide, slide, "landmark")),
    st.just(Window(1, 1)),
)
stream_windows = st.builds(StreamWindow, st.sampled_from(STREAMS), windows)


@st.composite
def continuous(draw: st.DrawFn) -> ContinuousQuery:
    """A continuous query as a text says it."""
    form = draw(st.one_of(queries(OPERATORS), st.sampled_from(FORMS), _others()))
    result = draw(st.lists(stream_windows, min_size=1, max_size=3, unique=True))
    if draw(st.booleans()) and any(isinstance(part, al.BGP) for part in every_pattern(form.pattern)):
        form, result = draw(_named(form, result))
    if draw(st.integers(0, 2)) == 0:
        form = draw(with_timestamp(form))
    operator = draw(st.one_of(st.none(), st.sampled_from([R2S.RSTREAM, R2S.ISTREAM, R2S.DSTREAM])))
    name = draw(st.sampled_from((None, "hot", "http://e/hot")))
    background = draw(st.lists(st.sampled_from(("http://e/rooms", "urn:g:1")), max_size=2, unique=True))
    return ContinuousQuery(form, tuple(result), operator, name=name, background=tuple(background))


@st.composite
def _named(draw: st.DrawFn, form: al.QueryForm, rows: list[StreamWindow]) -> tuple[al.QueryForm, list[StreamWindow]]:
    """The form with BGPs in windows, as a text gives it, and its windows named; unchanged when not all are read."""
    named = [replace(item, name=name) for item, name in zip(rows, NAMES, strict=False)]
    choices = [f"<{item.name}>" for item in named]
    result = parse_sparql(sparql(wrapped(form, lambda: draw(st.sampled_from((None, *choices * 2))))))
    graphs = reads(result)
    used = [item for item in named if f"<{item.name}>" in graphs]
    return (result, used) if used and len(set(graphs)) > 1 else (form, rows)


@st.composite
def _others(draw: st.DrawFn) -> al.QueryForm:
    """An ASK, or a CONSTRUCT whose template has blank nodes, over what a SELECT asks."""
    form = draw(queries(OPERATORS - {"GROUP", "HAVING", "DISTINCT"}))
    assert isinstance(form.pattern, al.Project)
    where = form.pattern.pattern
    if draw(st.booleans()):
        return al.Ask(where)
    node = st.sampled_from((*form.pattern.variables, al.Var("_:100"), al.Var("_:101")))
    triple = st.builds(al.TriplePattern, node, st.just("<http://e/of>"), st.one_of(node, st.just('"x"')))
    template = draw(st.lists(triple, min_size=1, max_size=3))
    pattern = al.Slice(al.OrderBy(where, ((form.pattern.variables[0], True),)), 1, 5) if draw(st.booleans()) else where
    return parse_sparql(sparql(al.Construct(tuple(template), pattern)))


def wrapped(form: al.QueryForm, choose: Callable[[], str | None]) -> al.QueryForm:
    """The form with each BGP under GRAPH, as chosen."""

    def wrap(pattern: al.Pattern) -> al.Pattern:
        name = choose() if isinstance(pattern, al.BGP) and pattern.patterns else None
        return al.Graph(name, pattern) if name else parts(pattern, wrap, inside)

    def inside(tree: al.Expression) -> al.Expression:
        match tree:
            case al.Exists(pattern=pattern):
                return al.Exists(wrap(pattern))
            case al.Call(operator=operator, arguments=arguments):
                return al.Call(operator, tuple(map(inside, arguments)))
            case _:
                return tree

    return with_pattern(form, wrap(form.pattern))


@st.composite
def with_timestamp(draw: st.DrawFn, form: al.QueryForm) -> al.QueryForm:
    """The form with a condition on the time of a triple beside its BGP, in two or three of its BGPs at most."""

    def filtered(pattern: al.Pattern) -> al.Pattern:
        below = parts(pattern, filtered, lambda tree: tree)
        return draw(_timed(below)) if isinstance(pattern, al.BGP) and draw(st.booleans()) else below

    return parse_sparql(sparql(with_pattern(form, filtered(form.pattern))))


@st.composite
def _timed(draw: st.DrawFn, block: al.BGP) -> al.Pattern:
    plain = [
        triple
        for triple in block.patterns
        if isinstance(triple.predicate, al.Var | str)
        and not any(var.name.startswith("_:") for var in al.triple_variables(triple))
    ]
    if not plain:
        return block
    triple = draw(st.sampled_from(plain))
    objects = [other.object for other in block.patterns]
    short = isinstance(triple.object, al.Var) and objects.count(triple.object) == 1 and draw(st.booleans())
    arguments = (triple.object,) if short else (triple.subject, triple.predicate, triple.object)
    call = al.Call("TIMESTAMP", arguments)  # type: ignore[arg-type]
    bound = draw(st.sampled_from(('"5"^^<http://www.w3.org/2001/XMLSchema#integer>', al.Var("t"))))
    return al.Filter(al.Call(">", (call, bound)), block)


def can_say(query: ContinuousQuery, dialect: str) -> bool:
    """Whether the dialect has words for the query."""
    named = query.windows[0].name is not None
    timed = uses_timestamp(query.form)
    plain = [item.window for item in query.windows if item.window.kind == "time"]
    counts = [item.window for item in query.windows if item.window.kind == "count"]
    landmarks = [item.window for item in query.windows if item.window.kind == "landmark"]
    match dialect:
        case "rspql":
            return named or len(query.windows) == 1 or (not timed and _is_mergeable(query))
        case "csparql":
            tumbling = all(window.size == window.slide for window in counts)
            return query.r2s in (None, R2S.RSTREAM) and not named and tumbling and not landmarks
        case "cqels":
            single = all(window.slide == 1 for window in (*counts, *landmarks))
            apart = named or len(query.windows) == 1
            return query.r2s in (None, R2S.ISTREAM) and not timed and single and apart
        case _:
            keyword = query.r2s is None or isinstance(query.form, al.Select)
            return keyword and not named and not timed and len(plain) == len(query.windows)


def _is_mergeable(query: ContinuousQuery) -> bool:
    """Whether a triple is read, no path is repeated or negated, and rows are not counted beside blank nodes."""
    results = list(every_pattern(query.form.pattern))
    triples = [triple for part in results if isinstance(part, al.BGP) for triple in part.patterns]
    paths = " ".join(str(triple.predicate) for triple in triples if not isinstance(triple.predicate, str | al.Var))
    labels = any(var.name.startswith("_:") for triple in triples for var in al.triple_variables(triple))
    counts = any(
        item.argument is None and item.distinct
        for part in results if isinstance(part, al.Group) for _, item in part.aggregates
    )  # fmt: skip
    plain = "Repeat(" not in paths and "NegatedSet(" not in paths
    return bool(triples) and plain and not (labels and counts)


def kept(query: ContinuousQuery, dialect: str) -> ContinuousQuery:
    """The query without what the dialect implies (its R2S operator) or has no place for (names)."""
    match dialect:
        case "rspql":
            return query if query.windows[0].name or len(query.windows) == 1 else with_named_windows(query)
        case "csparql":
            return replace(query, r2s=None, name=query.name or "query")
        case "cqels":
            return replace(_numbered(query), r2s=None, name=None)
        case _:
            return replace(query, name=None)


def _numbered(query: ContinuousQuery) -> ContinuousQuery:
    """The windows named by number in the order in which the text reads them."""
    if query.windows[0].name is None:
        return query
    order = list(dict.fromkeys(re.findall(r"GRAPH <([^>]*)> \{", sparql(query.form))))
    names = {name: f"urn:streamgauge:window:{number}" for number, name in enumerate(order, 1)}
    results = sorted(query.windows, key=lambda item: order.index(str(item.name)))
    form = renamed(query.form, {f"<{old}>": f"<{new}>" for old, new in names.items()})
    return replace(query, form=form, windows=tuple(replace(item, name=names[str(item.name)]) for item in results))
