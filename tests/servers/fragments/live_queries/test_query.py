"""What is asked is understood or refused by name; order and limits; when polls are due; what demand restricts."""

import asyncio
from random import Random

import pytest

from streamgauge.model import algebra as al
from streamgauge.model.fact import Fact
from streamgauge.query import parse_sparql
from streamgauge.servers.fragments.labels import Style
from streamgauge.servers.fragments.live_queries import (
    EVERYTHING,
    PollResult,
    RefusedQueryError,
    live_query,
    pattern_needs,
)
from streamgauge.servers.fragments.live_queries.incremental import IncrementalPlan
from streamgauge.servers.fragments.live_queries.poll_loop import PollTiming
from streamgauge.servers.fragments.live_queries.streamer import split_query
from tests.servers.fragments.live_queries.fakes import FakeSource, FakeWeb


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("SELECT * { GRAPH ?g { ?s ?p ?o BIND(NOW() AS ?n) } }", "NOW"),
        ("SELECT * { ?s ?p ?o FILTER(timestamp(?s) > 3) }", "timestamp()"),
        ("SELECT (NOW() AS ?n) { ?s ?p ?o }", "NOW"),
        ("SELECT * { { SELECT * { ?s ?p ?o } LIMIT 3 } }", "LIMIT"),
        ("SELECT * { ?s ?p ?o } ORDER BY (EXISTS { ?s ?s ?s })", "EXISTS in ORDER BY"),
    ],
)
def test_what_is_not_kept_current_is_refused_by_name(text, named):
    with pytest.raises(RefusedQueryError, match=named.replace("(", r"\(").replace(")", r"\)")):
        live_query(text)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("SELECT ?s { ?s <urn:p> ?o } ORDER BY DESC(?o) LIMIT 2", ["c", "b"]),
        ("SELECT ?s { ?s <urn:p> ?o } ORDER BY ?o OFFSET 1", ["b", "c"]),
        ("SELECT ?s { ?s <urn:p> ?o } ORDER BY (-1 * ?o)", ["c", "b", "a"]),
        ("SELECT DISTINCT ?k { ?s <urn:p> ?o; <urn:k> ?k } ORDER BY DESC(?o) LIMIT 1", ["x"]),
        ("SELECT ?k { ?s <urn:p> ?o; <urn:k> ?k } GROUP BY ?k ORDER BY DESC(COUNT(*))", ["x", "y"]),
    ],
)
def test_order_and_limits_of_the_whole(text, rows):
    numbers = [Fact((f"<urn:{name}>", "<urn:p>", _number(at))) for at, name in enumerate("abc")]
    keys = [Fact((f"<urn:{name}>", "<urn:k>", f"<urn:{key}>")) for name, key in zip("abc", "xyx", strict=True)]
    web = FakeWeb()
    plan = IncrementalPlan(live_query(text), [FakeSource(web, Style(), [*numbers, *keys])], Style(), web, 0)
    polled = asyncio.run(plan.poll())
    assert list(polled.bag) == [(f"<urn:{name}>",) for name in rows]


def _number(value):
    return f'"{value}"^^<http://www.w3.org/2001/XMLSchema#integer>'


def restricted(text):
    """The patterns of a demand by their predicates' last letters, each with those that restrict it."""
    wanted = pattern_needs(live_query(text).kept.pattern)
    names = [item.pattern.predicate[-2] if item.pattern != EVERYTHING else "*" for item in wanted]
    return {
        name: "".join(sorted({names[number] for ids in item.suppliers.values() for number in ids}))
        for name, item in zip(names, wanted, strict=True)
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT * { ?s <urn:a> ?x; <urn:b> ?y }", {"a": "b", "b": "a"}),
        ("SELECT * { ?s <urn:a> ?x OPTIONAL { ?s <urn:b> ?y } }", {"a": "", "b": "a"}),
        ("SELECT * { ?s <urn:a> ?x MINUS { ?s <urn:b> ?y } }", {"a": "", "b": "a"}),
        ("SELECT * { ?s <urn:a> ?x FILTER NOT EXISTS { ?s <urn:b> ?y } }", {"a": "", "b": "a"}),
        ("SELECT * { { ?s <urn:a> ?x } UNION { ?s <urn:b> ?y } }", {"a": "", "b": ""}),
        ("SELECT * { ?s <urn:c> ?z { ?s <urn:a> ?x } UNION { ?s <urn:b> ?y } }", {"a": "c", "b": "c", "c": ""}),
        ("SELECT * { ?s <urn:a> ?x OPTIONAL { ?s <urn:b> ?y } OPTIONAL { ?z <urn:c> ?y } }",
         {"a": "", "b": "a", "c": ""}),
        ("SELECT * { ?s <urn:a> ?x { SELECT (COUNT(?y) AS ?n) { ?s <urn:b> ?y } } }", {"a": "", "b": ""}),
        ("SELECT * { ?s <urn:a> ?x { SELECT ?s (COUNT(?y) AS ?n) { ?s <urn:b> ?y } GROUP BY ?s } }",
         {"a": "", "b": "a"}),
        ("SELECT * { ?s <urn:a>* ?x }", {"a": "", "*": ""}),
        ("SELECT * { <urn:s> <urn:a>* ?x }", {"a": ""}),
    ],
)  # fmt: skip
def test_demand_is_restricted_only_by_what_must_match(text, expected):
    assert restricted(text) == expected


@pytest.mark.parametrize(
    ("text", "dynamic", "static"),
    [
        ("SELECT * { ?s <urn:d> ?x; <urn:s> ?y }", ["d"], ["s"]),
        ("SELECT * { ?s <urn:d> ?x; <urn:s> ?y FILTER(?y > 1) }", ["d"], ["s"]),
        ("SELECT * { ?s <urn:d> ?x { ?s <urn:s> ?y } UNION { ?s <urn:t> ?y } }", ["d"], ["s", "t"]),
        ("SELECT * { ?s <urn:s> ?x { ?s <urn:t> ?y } UNION { ?s <urn:d> ?y } }", ["d", "t"], ["s"]),
        ("SELECT * { ?s <urn:d> ?x; <urn:s> ?y OPTIONAL { ?s <urn:t> ?z } }", ["d"], ["s"]),
        ("SELECT * { ?s <urn:s> ?x; <urn:t> ?y }", ["s", "t"], []),
    ],
)
def test_the_rewriter_splits_what_is_joined(text, dynamic, static):
    parts = split_query(parse_sparql(text).pattern, lambda triple: triple.predicate in ("<urn:s>", "<urn:t>"))
    assert sorted(_predicates(parts.dynamic)) == dynamic
    assert sorted(_predicates(parts.static)) == static


def _predicates(pattern):
    return [need.pattern.predicate[-2] for need in pattern_needs(pattern)] if isinstance(pattern, al.Pattern) else []


class Least(Random):
    """No spread."""

    def uniform(self, a, b):
        return a


@pytest.mark.parametrize(
    ("timing", "polled", "expected"),
    [
        (PollTiming(), {"due": 9_000}, 9_000),
        (PollTiming(), {"due": 9_000, "until": 3_000}, 9_000),
        (PollTiming(), {"until": 3_000}, 3_000),
        (PollTiming(), {"until": 50}, 350),
        (PollTiming(), {"until": -999}, 350),
        (PollTiming(), {"until": -1_000}, 10_000),
        (PollTiming(), {}, 10_000),
        (PollTiming(), {"lapsed": True}, 1_100),
        (PollTiming(), {"due": 50}, 350),
        (PollTiming(at_most_every=60_000), {"due": 9_000}, 60_000),
        (PollTiming(period=2_000), {"due": 9_000}, 2_000),
        (PollTiming(period=20_000), {"due": 9_000}, 9_000),
    ],
)
def test_when_a_poll_is_due(timing, polled, expected):
    poll_result = PollResult({}, 0, **{"due": None, "until": None, **polled})
    assert timing.next(0, 100, poll_result, Least()) == expected
    spread = [timing.next(0, 100, poll_result, Random(seed)) - expected for seed in range(50)]
    assert 0 <= min(spread) < max(spread) <= min(5_000, expected / 10)
