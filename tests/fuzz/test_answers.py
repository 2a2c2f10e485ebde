"""Whatever an engine answers, it gets a verdict: rows of any width, terms of any form, instants, scopes and kinds."""

from dataclasses import replace
from io import StringIO

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st
from rich.console import Console

from streamgauge.model.answer import Answer
from streamgauge.model.run import Run
from streamgauge.model.semantics import R2S, Counting, Grain, Report, Semantics
from streamgauge.model.terms import XSD
from streamgauge.model.verdict import Judgement, Verdict
from streamgauge.oracle.expected.reports import definition
from streamgauge.oracle.judging.gracious import gracious
from streamgauge.oracle.judging.oracle import JudgingRules, check
from streamgauge.papers.rules import judge_as, names
from streamgauge.report.text import verdict_json, verdict_lines
from streamgauge.semantics.profiles import PROFILES
from streamgauge.semantics.refusal import RefusedError
from tests.examples import examples
from tests.fuzz.bounds import outcome
from tests.notation import stream
from tests.oracle.runs import right_run

TEXT = " | ".join(f"{t}: s{t % 3} p {t}f. _:b{t % 2} p s{t % 3}." for t in range(0, 24, 2))
QUERIES = (
    "SELECT ?s ?o { ?s <urn:p> ?o }",
    "SELECT ?s (AVG(?o) AS ?mean) { ?s <urn:p> ?o } GROUP BY ?s HAVING(AVG(?o) > 3)",
    "SELECT (COUNT(*) AS ?n) { ?s <urn:p> ?o FILTER(?o * 2 >= 12) }",
    "ASK { ?s <urn:p> ?o FILTER(isNumeric(?o) && ?o > 20) }",
    "CONSTRUCT { ?o <urn:of> ?s } { ?s <urn:p> ?o FILTER(!isLiteral(?o)) }",
)
SEMANTICS = [
    replace(profile, name=profile.name, time_unit=1)
    for profile in PROFILES.values()
    if Report.EXPIRATION not in profile.report
]
"""Those of windows that close: nothing ends in these runs."""

LEXICAL = st.sampled_from(
    ["", "0", "-0", "4", "4.0000001", "NaN", "INF", "-INF", "1e400", "1e-400", "x", "9" * 60, "0x1"]
)
TYPES = st.sampled_from(["float", "double", "decimal", "integer", "boolean", "string", "dateTime"])
TERMS = st.one_of(
    st.sampled_from(["<urn:s0>", "<urn:s1>", "_:b0", "_:b1", "_:", "", "<", '"', '"a"@en', '"true"^^<urn:t>', "\x00"]),
    st.builds(lambda text, kind: f'"{text}"^^<{XSD}{kind}>', LEXICAL, TYPES),
    st.text(max_size=6),
)
ROWS = st.lists(st.lists(st.none() | TERMS, max_size=4).map(tuple), max_size=5).map(tuple)
NUMBERS = st.one_of(st.integers(-5, 30), st.sampled_from([2**62, -(2**63), 2**63 - 1]))
VARIABLES = st.lists(st.sampled_from(["s", "o", "mean", "n", "", "x"]), max_size=4).map(tuple)
ANSWERS = st.builds(
    Answer,
    VARIABLES,
    ROWS,
    st.just(()) | ROWS,
    st.sampled_from(["solutions", "triples", "boolean"]),
    st.none() | NUMBERS,
    st.none() | st.tuples(NUMBERS, NUMBERS),
    NUMBERS,
)


def shaped(answer: Answer) -> Answer:
    """What a run folder can hold: rows as wide as their variables (triples: three, booleans: one)."""
    width = {"solutions": len(answer.variables), "triples": 3, "boolean": 1}[answer.kind]

    def fit(rows):
        return tuple((*row, *(None,) * width)[:width] for row in rows)

    return replace(answer, added=fit(answer.added), removed=fit(answer.removed))


@st.composite
def runs(draw: st.DrawFn) -> Run:
    """A right run of some semantics and query, its answers changed, dropped, repeated, moved or made up."""
    semantics: Semantics = draw(st.sampled_from(SEMANTICS))
    semantics = replace(semantics, grain=draw(st.sampled_from(Grain)))
    if draw(st.booleans()):
        semantics = replace(semantics, r2s=draw(st.sampled_from(sorted(semantics.r2s_able))))
    named = draw(st.booleans())
    asked = draw(st.sampled_from(QUERIES))
    try:
        run = right_run(semantics, text=TEXT, sparql=asked, window=(8, 4), advance=24, named=named)
    except RefusedError:
        assert semantics.content is Counting.UPDATES, "only updates mean nothing for some of these queries"
        reject()
    answers = list(run.answers)
    for _ in range(draw(st.integers(0, 4))):
        place = draw(st.integers(0, len(answers)))
        way = draw(st.sampled_from(["drop", "repeat", "insert", "rows", "unname", "receive", "change"]))
        answers[place:] = _changed(draw, way, answers[place:])
    header = replace(run.header, factor=draw(st.none() | st.sampled_from([0.5, 1.0, 1e-6, 1e6])))
    return replace(run, header=header, answers=tuple(map(shaped, answers)), fed=draw(st.just(run.fed) | st.just(())))


def _changed(draw: st.DrawFn, way: str, rest: list[Answer]) -> list[Answer]:
    if way == "insert" or not rest:
        return [draw(ANSWERS), *rest]
    first, *others = rest
    match way:
        case "drop":
            return others
        case "repeat":
            return [first, first, *others]
        case "rows":
            return [replace(first, added=draw(st.permutations(first.added)) + list(draw(ROWS))), *others]
        case "unname":
            return [replace(first, instant=None, scope=None), *others]
        case "receive":
            return [replace(first, received=draw(NUMBERS)), *others]
        case _:
            return [replace(draw(ANSWERS), added=first.added, variables=first.variables), *others]


def judged(run: Run, max_delay: float | None, gracefully: bool) -> Verdict:
    held = stream(TEXT)
    verdict = check(run, definition(held), 0, JudgingRules(max_delay=max_delay))
    return gracious(run, held, verdict) if gracefully else verdict


def coherent(run: Run, verdict: Verdict) -> None:
    """What every verdict keeps."""
    assert 0 <= verdict.precision <= 1
    assert 0 <= verdict.recall <= 1
    if verdict.judgement is Judgement.UNKNOWN:
        assert verdict.reason
        return
    right = all(window.right for window in verdict.windows)
    assert (verdict.judgement in {Judgement.RIGHT, Judgement.LATE}) is right
    for window in verdict.windows:
        assert 0 <= window.true_positives <= min(window.expected, window.actual)
        assert len(window.missing) <= window.expected - window.true_positives
        assert len(window.surplus) <= window.actual - window.true_positives
        if window.fitted is not None:
            assert all(0 <= share <= 1 for share in window.fitted)
    console = Console(file=StringIO(), width=120)
    console.print(verdict_lines(run.header, verdict))
    assert verdict_json(run.header, verdict)["judgement"] == verdict.judgement.value


def _judges(run: Run, max_delay: float | None, gracefully: bool) -> None:
    verdict = outcome(lambda: judged(run, max_delay, gracefully))
    if isinstance(verdict, Verdict):
        coherent(run, verdict)


DELAYS = st.none() | st.sampled_from([0.0, 1.0, 1e9])


@pytest.mark.slow
@given(runs(), DELAYS, st.booleans())
@examples(30, prove=5000)
def test_any_answers_get_a_verdict(run: Run, max_delay: float | None, gracefully: bool):
    _judges(run, max_delay, gracefully)


def _by_rules(run: Run, name: str) -> None:
    """Published rules know solutions only; the command line refuses other answers before."""
    run = replace(run, answers=tuple(shaped(replace(answer, kind="solutions")) for answer in run.answers))
    verdict = outcome(lambda: judge_as(name, run, stream(TEXT)))
    if isinstance(verdict, Verdict):
        assert verdict.rules == name
        assert 0 <= verdict.precision <= 1


@given(runs(), st.sampled_from(names()))
@examples(25, prove=1500)
def test_published_rules_give_a_verdict_too(run: Run, name: str):
    _by_rules(run, name)


def test_a_right_run_is_drawn_now_and_then():
    """The fuzz reaches both ends: what is unchanged is right, what is changed mostly is not."""
    run = right_run(
        replace(PROFILES["rspql"], r2s=R2S.RSTREAM), text=TEXT, sparql=QUERIES[0], window=(8, 4), advance=24
    )
    assert judged(run, None, gracefully=True).judgement is Judgement.RIGHT
