"""Hypothesis strategies: semantics, windows of every kind over two streams, elements that may end, queries."""

from hypothesis import strategies as st

from streamgauge.model import algebra as al
from streamgauge.model.element import StreamElement
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.semantics import (
    CQL,
    Borders,
    Changes,
    Counting,
    Due,
    EmptyAggregate,
    Grain,
    Origin,
    Report,
    Scope,
    Semantics,
    Tick,
)
from streamgauge.query.traversal import children, parts
from tests.notation import STREAM
from tests.sparql.draw import DEFAULT, columns, queries, triples

OTHER = "http://ex.org/streams/other"
UNASKED = "http://ex.org/streams/unasked"
NAMES = ("urn:x:w0", "urn:x:w1", "urn:x:w2")
UNKNOWN = "<urn:x:unknown>"

REPORTS = [
    frozenset(strategies)
    for strategies in (
        [Report.WINDOW_CLOSE],
        [Report.WINDOW_CLOSE, Report.NON_EMPTY],
        [Report.WINDOW_CLOSE, Report.CONTENT_CHANGE],
        [Report.WINDOW_CLOSE, Report.CONTENT_CHANGE, Report.NON_EMPTY],
        [Report.WINDOW_CLOSE, Report.PERIODIC],
        [Report.WINDOW_CLOSE, Report.PERIODIC, Report.NON_EMPTY],
        [Report.WINDOW_CLOSE, Report.PERIODIC, Report.CONTENT_CHANGE],
        [Report.CONTENT_CHANGE],
        [Report.CONTENT_CHANGE, Report.NON_EMPTY],
        [Report.PERIODIC],
        [Report.PERIODIC, Report.NON_EMPTY],
        [Report.PERIODIC, Report.CONTENT_CHANGE],
        [Report.PERIODIC, Report.NON_EMPTY, Report.CONTENT_CHANGE],
        [each for each in Report if each is not Report.EXPIRATION],
    )
]
"""Every conjunction that has instants."""


@st.composite
def semantics(draw: st.DrawFn) -> Semantics:
    """Any value whose content is a set, with application time and no lateness."""
    report = draw(st.sampled_from(REPORTS))
    close_only = Report.WINDOW_CLOSE in report and Report.PERIODIC not in report
    return Semantics(
        "drawn",
        report=report,
        tick=draw(st.sampled_from(list(Tick))),
        r2s=draw(st.sampled_from(CQL)),
        notify_empty=draw(st.booleans()),
        origin=draw(st.sampled_from([Origin.FIXED, Origin.FIRST])),
        t0=draw(st.integers(0, 4)),
        borders=draw(st.sampled_from(list(Borders))),
        scope=draw(st.sampled_from(list(Scope))),
        partial_head=draw(st.booleans()),
        due=draw(st.sampled_from(list(Due))) if close_only else Due.ALL,
        changes=draw(st.sampled_from(list(Changes))),
        period=draw(st.integers(1, 5)) if Report.PERIODIC in report else None,
        time_unit=draw(st.integers(1, 3)),
        answers=draw(st.sampled_from([Counting.SET, Counting.BAG])),
        grain=draw(st.sampled_from(list(Grain))),
        empty_aggregate=draw(st.sampled_from(list(EmptyAggregate))),
    )


@st.composite
def windows(draw: st.DrawFn, most: int = 3) -> tuple[StreamWindow, ...]:
    """One to ``most`` windows of any kind over two streams; names differ."""
    count = draw(st.integers(1, most))
    named = [draw(st.booleans()) for _ in range(count)]
    return tuple(
        StreamWindow(draw(st.sampled_from([STREAM, STREAM, OTHER])), draw(window()), NAMES[n] if named[n] else None)
        for n in range(count)
    )


@st.composite
def window(draw: st.DrawFn) -> Window:
    """A window of any kind, small sizes and slides."""
    slide = draw(st.integers(1, 8))
    kind = draw(st.sampled_from(["time", "time", "count", "landmark"]))
    return Window(slide if kind == "landmark" else draw(st.integers(1, 8)), slide, kind)


@st.composite
def streams(draw: st.DrawFn) -> tuple[StreamElement, ...]:
    """Elements in order of time on two streams that are asked for and one that is not; some end."""
    times = sorted(draw(st.lists(st.integers(0, 18), max_size=10)))
    graphs = draw(st.lists(triples(), min_size=len(times), max_size=len(times)))
    ending = draw(st.booleans())
    return tuple(
        StreamElement(
            draw(st.sampled_from([STREAM, STREAM, STREAM, OTHER, OTHER, UNASKED])),
            time,
            number,
            tuple(dict.fromkeys(graph))[:4] or (("<urn:x>", "<urn:y>", "<urn:z>"),),
            (),
            time + draw(st.integers(1, 9)) if ending and draw(st.booleans()) else None,
        )
        for number, (time, graph) in enumerate(zip(times, graphs, strict=True))
    )


@st.composite
def asked(draw: st.DrawFn, over: tuple[StreamWindow, ...], operators: frozenset[str] = DEFAULT) -> ContinuousQuery:
    """A query over windows: GRAPH around some of its patterns, timestamp() in some; sometimes ASK or CONSTRUCT."""
    everything = al.Project(al.BGP((al.TriplePattern(S, P, THING),)), (S, P, THING))
    pattern = draw(queries(operators)).pattern if draw(st.booleans()) else everything
    names = [f"<{each.name}>" for each in over if each.name is not None]
    if draw(st.integers(0, 3)) == 0:
        pattern = draw(_timed())
    choices = [None, *names, *names, UNKNOWN] if names or draw(st.integers(0, 9)) == 0 else [None]
    pattern = _under(pattern, lambda: draw(st.sampled_from(choices)))
    if names and not _has_graph(pattern) and draw(st.integers(0, 3)) == 0:
        pattern = draw(_any_graph())
    static = draw(triples(6)) if draw(st.booleans()) else ()
    return ContinuousQuery(draw(_form(pattern)), over, static=static)


@st.composite
def _form(draw: st.DrawFn, pattern: al.Pattern) -> al.QueryForm:
    names = columns(pattern)
    kind = draw(st.integers(0, 11))
    if kind == 0:
        return al.Ask(pattern)
    if kind == 1:
        ends = st.sampled_from([al.Var(name) for name in names] + ["<urn:x:made>"])
        return al.Construct((al.TriplePattern(draw(ends), "<urn:x:is>", draw(ends)),), pattern)
    return al.Select(pattern, names)


S, P, THING, S2 = (al.Var(name) for name in ("s", "p", "o", "s2"))


@st.composite
def _timed(draw: st.DrawFn) -> al.Pattern:
    """A few shapes with timestamp() and NOW()."""
    one = al.TriplePattern(S, draw(st.sampled_from((P, "<urn:x:knows>", "<urn:x:value>"))), THING)
    two = al.TriplePattern(S2, one.predicate, THING)
    first, second = (al.Call("TIMESTAMP", (t.subject, t.predicate, t.object)) for t in (one, two))
    at = al.Var("at")
    shapes: list[al.Pattern] = [
        al.Project(al.Extend(al.BGP((one,)), at, first), (S, THING, at)),
        al.Project(al.Extend(al.BGP((one,)), at, al.Call("TIMESTAMP", (THING,))), (S, at)),
        al.Project(al.Filter(al.Call("<", (first, second)), al.BGP((one, two))), (S, S2, THING)),
        al.Project(
            al.Group(al.BGP((one,)), ((S, S),), ((at, al.Aggregate("MAX", first)),)),
            (S, at),
        ),
        al.Project(al.LeftJoin(al.BGP((one,)), al.BGP((two,)), al.Call("<=", (first, second))), (S, S2)),
        *_at_instants(al.BGP((one,)), al.BGP((two,))),
    ]
    return draw(st.sampled_from(shapes))


def _at_instants(one: al.Pattern, two: al.Pattern) -> list[al.Pattern]:
    """Shapes with NOW() in every operator that has expressions."""
    at, now = al.Var("at"), al.Call("NOW", ())
    soon = al.Call("<", (now, '"1970-01-01T00:00:00.008Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'))
    late = al.Call("!", (soon,))
    count = al.Group(one, (), ((at, al.Aggregate("COUNT", None)),))
    return [
        al.Project(al.Extend(one, at, now), (S, THING, at)),
        al.Project(al.Minus(al.Filter(soon, one), al.Filter(late, two)), (S, THING)),
        al.Project(al.Minus(al.Filter(soon, one), al.Filter(soon, two)), (S, THING)),
        al.Project(al.Filter(al.Exists(al.Filter(late, two)), one), (S, THING)),
        al.Project(al.LeftJoin(one, two, late), (S, S2)),
        al.Project(al.Group(one, ((S, S),), ((at, al.Aggregate("MAX", now)),)), (S, at)),
        al.Project(al.Extend(count, THING, now), (at, THING)),
        al.Project(al.Extend(al.Values((), ((),)), at, now), (at,)),
        al.Project(al.Slice(al.Project(al.OrderBy(al.Filter(soon, one), ((S, False), (now, True))), (S,)), 0, 1), (S,)),
    ]


@st.composite
def _any_graph(draw: st.DrawFn) -> al.Pattern:
    """GRAPH ?g over what pyoxigraph answers as the specification has it."""
    g = al.Var("g")
    bgp = al.BGP((al.TriplePattern(S, P, THING),))
    more = al.BGP((al.TriplePattern(THING, P, S2),))
    inside = draw(st.sampled_from([bgp, al.LeftJoin(bgp, more), al.Join(bgp, more), al.Union(bgp, more)]))
    if draw(st.integers(0, 3)) == 0:
        inside = al.Extend(inside, al.Var("at"), al.Call("NOW", ()))
    outside: al.Pattern = al.Graph(g, inside)
    if draw(st.booleans()):
        outside = al.Join(outside, bgp)
    return al.Project(outside, (g, S, THING, al.Var("at")))


def _under(pattern: al.Pattern, choose) -> al.Pattern:
    """The pattern with some of its BGPs under GRAPH."""
    if isinstance(pattern, al.BGP):
        name = choose()
        return pattern if name is None else al.Graph(name, pattern)
    return parts(pattern, lambda inner: _under(inner, choose), lambda tree: tree)


def _has_graph(pattern: al.Pattern) -> bool:
    return isinstance(pattern, al.Graph) or any(map(_has_graph, children(pattern)))
