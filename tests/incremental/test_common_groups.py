"""Queries of one session that differ in their thresholds keep one aggregation, and say what each says alone."""

from random import Random

import pytest

from streamgauge.engines import live
from streamgauge.incremental import common_groups
from streamgauge.incremental.common_groups import Threshold, threshold
from streamgauge.incremental.grouped import Grouped
from streamgauge.model import algebra as al
from streamgauge.model.element import StreamElement
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.semantics import Report, Semantics
from streamgauge.query import parse_sparql
from streamgauge.semantics.profiles import PROFILES

STREAM = "urn:s"
PAUSE = 400
"""Milliseconds without an element after the 20th and after the last: windows are empty meanwhile."""

NUMBERS = ["-3", "-0.5", "0", "1", "1.0", "1.5e0", "2", '"NaN"^^<http://www.w3.org/2001/XMLSchema#double>', "'2'", "7"]
TEXTS = [
    "SELECT ?g (AVG(?v) AS ?a) { ?s <urn:g> ?g ; <urn:v> ?v } GROUP BY ?g HAVING(AVG(?v) > %s)",
    "SELECT ?g (AVG(?v) AS ?a) { ?s <urn:g> ?g ; <urn:v> ?v } GROUP BY ?g HAVING(%s > AVG(?v))",
    "SELECT ?g { ?s <urn:g> ?g ; <urn:v> ?v } GROUP BY ?g HAVING(MAX(?v) >= %s && MAX(?v) < 4)",
    "SELECT (COUNT(DISTINCT ?v) AS ?t) { ?s <urn:v> ?v } HAVING(COUNT(DISTINCT ?v) <= %s)",
    "SELECT (MIN(?v) AS ?t) (COUNT(*) AS ?n) { ?s <urn:v> ?v } HAVING(MIN(?v) = %s)",
]


def elements(seed: int):
    draw = Random(seed)
    kinds = {"integer": (-3, 0, 1, 2, 7), "decimal": ("-0.5", "1.0"), "double": ("1.5e0",)}
    schema = "http://www.w3.org/2001/XMLSchema#"
    values = ['"2"', *(f'"{text}"^^<{schema}{kind}>' for kind, texts in kinds.items() for text in texts)]
    for number in range(40):
        subject, drawn = f"<urn:s{number % 9}>", draw.choice(values)
        added = ((subject, "<urn:g>", f"<urn:g{number % 3}>"), (subject, "<urn:v>", drawn))
        yield StreamElement(STREAM, 25 * number + PAUSE * (number // 20), number, added)


def said(asked: list[ContinuousQuery], semantics: Semantics, seed: int):
    answers: list = [[] for _ in asked]
    session = live.start_all([(item, semantics, answer.append) for item, answer in zip(asked, answers, strict=True)])
    for element in elements(seed):
        session.push(element)
    session.advance(1000 + 2 * PAUSE)
    session.close()
    return [[(a.instant, sorted(a.added, key=str), sorted(a.removed, key=str)) for a in answer] for answer in answers]


def ways():
    close = next(profile for profile in PROFILES.values() if Report.WINDOW_CLOSE in profile.report)
    change = next(profile for profile in PROFILES.values() if Report.CONTENT_CHANGE in profile.report)
    return [(close, Window(200, 25)), (change, Window(200, 25)), (PROFILES["rspql"], Window(200, 50))]


@pytest.mark.slow
@pytest.mark.parametrize("way", range(3))
@pytest.mark.parametrize("text", TEXTS)
def test_each_query_says_what_it_says_alone(monkeypatch: pytest.MonkeyPatch, text: str, way: int) -> None:
    semantics, window = ways()[way]
    over = (StreamWindow(STREAM, window),)
    asked = [ContinuousQuery(parse_sparql(text % number), over) for number in NUMBERS]
    alone = [said([item], semantics, way)[0] for item in asked]
    made, make = [], Grouped.__init__
    monkeypatch.setattr(Grouped, "__init__", lambda self, *given: (made.append(self), make(self, *given))[1])
    assert said(asked, semantics, way) == alone
    assert len(made) == len(asked) + 1, "each is tried by itself, then there is one for all"
    assert len({str(item) for item in alone}) > 1


def test_a_row_is_handed_to_those_alone_whose_number_it_may_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    handed = []
    monkeypatch.setattr(common_groups, "add", lambda bag, row, count: handed.append((id(bag), row, count)))
    ordered = common_groups._OrderedTaps(0, above=True)
    taps = [type("Reader", (), {"pending": {}})() for _ in range(100)]
    for number, tap in zip([*range(50, 100), *range(50)], taps, strict=True):
        ordered.add(number, tap)
    ordered.hand({('"3"',): 1})
    assert {bag for bag, _, _ in handed} == {id(tap.pending) for tap in taps[50:54]}
    handed.clear()
    ordered.hand({("<urn:no-number>",): 1, (None,): -1})
    assert len(handed) == 200


@pytest.mark.parametrize(
    ("condition", "result"),
    [
        (al.Call(">", (al.Var("a"), '"4"')), Threshold("a", True, 4.0)),
        (al.Call("<=", ('"4"', al.Var("a"))), Threshold("a", True, 4.0)),
        (al.Call("<", (al.Var("a"), '"-1e1"')), Threshold("a", False, -10.0)),
        (al.Call("<", (al.Var("b"), '"4"')), None),
        (al.Call("=", (al.Var("a"), '"4"')), None),
        (al.Call("<", (al.Var("a"), al.Var("b"))), None),
        (al.Call("<", (al.Var("a"), '"NaN"')), None),
    ],
)
def test_a_threshold_compares_an_aggregate_with_a_number(condition: al.Expression, result: Threshold | None) -> None:
    assert threshold(condition, ["a"]) == result
