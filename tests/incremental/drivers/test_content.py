"""What a window's content feeds to the evaluator, against a list of arrivals that is looked through each time."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from streamgauge.incremental.drivers.content import BufferedContent, Latest, SetChanges, WindowContent
from streamgauge.incremental.plan import BgpRequest
from streamgauge.incremental.stamp_rows import StampRows, stamp_rows
from streamgauge.model.algebra import BGP, TriplePattern, Var
from streamgauge.model.semantics import Changes
from streamgauge.query.stamps import stamp, time_fact, time_term

TRIPLES = [*(("<urn:a>", f"<urn:{p}>", f"<urn:{n}>") for n, p in enumerate("ppq")), ("<urn:1>", "<urn:p>", "<urn:1>")]


class Graph:
    """Counts what enters and leaves; a triple never leaves more often than it entered."""

    def __init__(self):
        self.copies = Counter()

    def enter(self, triples):
        self.copies.update(triples)

    def leave(self, triples):
        self.copies.subtract(triples)
        assert min(self.copies.values(), default=0) >= 0

    @property
    def held(self):
        return set(+self.copies)


arrived = st.lists(
    st.tuples(st.integers(0, 3), st.lists(st.sampled_from(TRIPLES), max_size=2), st.none() | st.integers(-1, 8)),
    max_size=15,
)


@given(arrived, st.integers(1, 6), st.booleans(), st.none() | st.sets(st.sampled_from(["<urn:p>", "<urn:q>"])))
def test_what_is_held_is_what_came_in_scope_and_has_not_ended(steps, size, by_count, stamped):
    """The triples, and the stamps of those whose predicates are stamped, all unless said."""
    graph, stamps = Graph(), Graph()
    x, y, t = map(Var, "xyt")
    rows = StampRows((x, y, Var("z"), t), ("t", "x", "y", "z"))
    loops, constant = StampRows((x, y, x, t), ("t", "x")), StampRows(("<urn:a>", "<urn:p>", "<urn:1>", t), ("t",))
    latest_of = Latest(stamps.enter, stamps.leave, stamped, (rows, loops, constant))
    content = WindowContent(graph.enter, graph.leave, SetChanges(Changes.BOTH), latest_of)
    time, came, before = 0, [], set()
    for wait, triples, lasts in steps:
        time += wait
        until = None if lasts is None else time + lasts
        content.enter(time, tuple(triples), until)
        came += [(time, tuple(triples), until)] if triples else []
        if by_count:
            content.crop(size)
            scope = came[-size:]
        else:
            content.drop(time - size)
            scope = [one for one in came if one[0] >= time - size]
        content.end(time)
        alive = [(at, triple) for at, triples, until in scope if until is None or until > time for triple in triples]
        now = {triple for _, triple in alive}
        assert graph.held == now
        assert content.held == bool(now)
        assert content.settle() == (now != before)
        latest = {triple: max(at for at, other in alive if other == triple) for triple in now}
        told = {(time_term(at), *triple): 1 for triple, at in latest.items() if stamped is None or triple[1] in stamped}
        assert rows.found == told
        assert loops.found == {row[:2]: 1 for row in told if row[1] == row[3]}
        assert constant.found == {row[:1]: 1 for row in told if row[1:] == ("<urn:a>", "<urn:p>", "<urn:1>")}
        assert stamps.held == {
            fact
            for triple, at in latest.items()
            if stamped is None or triple[1] in stamped
            for fact in (*stamp(triple), time_fact(triple, at))
        }
        before = now


def test_a_waiting_content_stands_still_between_looks():
    graph = Graph()
    content = BufferedContent(graph.enter, graph.leave, SetChanges(Changes.BOTH))
    content.enter(1, (TRIPLES[0],), None)
    assert not graph.held
    assert not content.still
    content.show()
    assert graph.held == {TRIPLES[0]}
    content.enter(9, (TRIPLES[1],), None)
    content.drop(5)
    assert graph.held == set()
    assert content.settle() is False


def test_requests_for_whole_stamps_are_rows():
    parts = ("subject", "predicate", "object", "time")
    ends = (Var("s"), "<urn:p>", Var("v"), Var("t"))
    patterns = tuple(
        TriplePattern(Var("f"), f"<urn:streamgauge:{part}>", end) for part, end in zip(parts, ends, strict=True)
    )

    def asked(some, output=("s", "v", "t"), conditions=()):
        return stamp_rows(BgpRequest(None, BGP(tuple(some)), conditions, output))

    assert asked(patterns) is not None
    others = TriplePattern(Var("g"), *([patterns[3].predicate, patterns[3].object]))
    assert asked(patterns[:3], ("s",)) is None
    assert asked((*patterns[:3], others)) is None
    assert asked((*patterns[:3], TriplePattern(Var("f"), patterns[3].predicate, Var("f"))), ("s",)) is None
    assert asked(patterns, ("f",)) is None
    assert asked(patterns, conditions=("<urn:true>",)) is None
