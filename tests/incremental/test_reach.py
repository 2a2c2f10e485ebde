"""Reached nodes are the closure, however edges and starts come and go, and a change costs the pairs that it changes."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.incremental import reach
from streamgauge.incremental.budget import EvaluationBudget
from streamgauge.incremental.reach import ReachedNodes, components

nodes = st.integers(0, 7).map(str)
edges = st.sets(st.tuples(nodes, nodes), max_size=14)


def closure(there, starts):
    results = {}
    for start in starts:
        reached, waiting = set(), [start]
        while waiting:
            node = waiting.pop()
            fresh = {target for source, target in there if source == node} - reached
            reached |= fresh
            waiting += fresh
        results[start] = reached
    return results


@pytest.mark.parametrize("many", [0, 8, 1 << 40])
@given(st.data())
def test_reached_nodes_are_the_closure(many, data):
    """Change by change, and followed again at once; with all nodes for starts, or a few."""
    kept, there, starts, shown = ReachedNodes(EvaluationBudget()), set(), set(), set()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reach, "RESTART_SHARE", many)
        for _ in range(data.draw(st.integers(1, 5))):
            now = (
                data.draw(edges) if data.draw(st.booleans()) else there ^ data.draw(edges.filter(lambda x: len(x) < 4))
            )
            asked = data.draw(st.sets(nodes) | st.just({str(n) for n in range(8)}))
            moves = list(kept.change(now - there, there - now, asked - starts, starts - asked))
            there, starts = now, asked
            for start, lost, gained in moves:
                pairs = {(start, end) for end in lost}
                assert pairs <= shown
                shown -= pairs
                pairs = {(start, end) for end in gained}
                assert not pairs & shown
                shown |= pairs
            wanted = closure(there, starts)
            assert shown == {(start, end) for start, ends in wanted.items() for end in ends}
            assert {start: kept.ends(start) for start in starts} == wanted
            assert kept.held == len(there) + len(starts) + len(shown)


@given(edges)
def test_components_come_after_those_that_they_lead_to(there):
    forward = {}
    for source, target in there:
        forward.setdefault(source, set()).add(target)
    results = list(components(list(forward), forward, EvaluationBudget()))
    ends = closure(there, {node for edge in there for node in edge})
    place = {node: at for at, members in enumerate(results) for node in members}
    assert place.keys() == ends.keys()
    assert sum(map(len, results)) == len(place)
    for one in ends:
        for other in ends[one]:
            assert place[other] <= place[one]
            assert (place[other] == place[one]) is (one == other or one in ends[other])


def looks(kept, *change):
    kept._effort.renew()
    list(kept.change(*change))
    return kept._effort.most - kept._effort.left


def test_a_change_costs_the_pairs_that_it_changes():
    """In a ladder and in a ring of 400: the last edge, one that has another way, one that breaks all pairs."""
    names = [f"{n:03}" for n in range(400)]
    chain = list(pairwise(names))
    kept = ReachedNodes(EvaluationBudget())
    assert looks(kept, chain, (), names, ()) >= 400 * 399 // 2
    assert looks(kept, [("399", "400")], (), ["400"], ()) < 10 * 400
    assert looks(kept, (), [("000", "001")], (), ["000"]) < 10 * 400
    assert looks(kept, [("200", "x"), ("x", "202")], (), (), ()) < 10 * 400
    assert looks(kept, (), [("201", "202")], (), ()) < 20 * 200
    assert looks(kept, [("202", "201")], (), (), ()) < 20 * 400
    assert looks(kept, (), [("202", "201")], (), ()) < 20 * 400
