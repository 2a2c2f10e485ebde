"""One report of a judged run: what its windows hold, what was expected of it and what was received."""

from dataclasses import replace

import pytest

from streamgauge.formats.stream import write
from streamgauge.model.answer import Answer
from streamgauge.model.run import Run
from streamgauge.model.semantics import R2S, Clock, Counting, Grain, Semantics
from streamgauge.oracle.expected.reports import definition
from streamgauge.oracle.judging.judge import Means, judge_run
from streamgauge.oracle.judging.opened import NoWindowError, opened
from streamgauge.oracle.judging.oracle import JudgingRules, check
from streamgauge.semantics.profiles import RSPQL
from tests.notation import stream, triples
from tests.oracle.runs import right_run

TEXT = "0: s0 p o0. | 4: s1 p o1. | 6: s1 p o2. | 11: s2 p o3. | 12: s2 p o3."


def rows(names: str) -> tuple[tuple[str], ...]:
    return tuple((f"<urn:{name}>",) for name in names.split())


def recorded(semantics: Semantics, *sent: str | None) -> Run:
    """A run over three windows of 5; each answer with these rows for its own, or left out."""
    run = right_run(semantics, text=TEXT, advance=15)
    pairs = zip(run.answers, sent, strict=True)
    return replace(run, answers=tuple(replace(one, added=rows(names)) for one, names in pairs if names is not None))


def shown(run: Run, folder, index: int, witnesses: int = 20):
    write(stream(TEXT), folder / "stream.parquet")
    verdict = check(run, definition(stream(TEXT)), 0, JudgingRules(witnesses=witnesses))
    window = opened(run, folder / "stream.parquet", verdict, index)
    assert window.variables == verdict.variables
    return window


@pytest.mark.parametrize(
    ("semantics", "sent", "index", "inside", "expected", "received"),
    [
        pytest.param({}, ("s0 s1", "s1", "s2"), 1, "s1 p o2.", "s1", "s1", id="right"),
        pytest.param({}, ("s0 s1", "s0 s1", "s2"), 1, "s1 p o2.", "s1", "s0 s1", id="a row more"),
        pytest.param({}, ("s0 s1", None, "s2"), 1, "s1 p o2.", "s1", None, id="missed"),
        pytest.param({"r2s": R2S.ISTREAM}, ("s0 s1", "", "s2"), 2, "s2 p o3.", "s2", "s2", id="what came"),
        pytest.param({"r2s": R2S.DSTREAM}, ("", "s0", "s1"), 1, "s1 p o2.", "s0", "s0", id="what went"),
        pytest.param(
            {"content": Counting.BAG}, ("s0 s1", "s1", "s2 s2"), 2, "s2 p o3. s2 p o3.", "s2 s2", "s2 s2", id="bag"
        ),
        pytest.param({"r2s": R2S.ISTREAM}, ("s0 s1", "", "s2"), 0, "s0 p o0. s1 p o1.", "s0 s1", "s0 s1", id="first"),
    ],
)
def test_a_report_is_shown_as_it_was_due_and_as_it_came(tmp_path, semantics, sent, index, inside, expected, received):
    able = frozenset(R2S)
    window = shown(recorded(replace(RSPQL, r2s_able=able, **semantics), *sent), tmp_path, index)
    assert window.content == tuple(triples(inside))
    assert window.expected == rows(expected)
    assert window.received == (None if received is None else rows(received))


@pytest.mark.parametrize("grain", [Grain.ROW, Grain.REPORT])
def test_an_answer_that_was_not_due_has_no_content(tmp_path, grain):
    run = right_run(replace(RSPQL, grain=grain), text=TEXT, advance=15)
    strange = Answer(run.answers[0].variables, rows("s0"), instant=7, scope=(2, 7))
    window = shown(replace(run, answers=(*run.answers, strange)), tmp_path, 1)
    assert (window.window.due, window.content, window.expected, window.received) == (False, (), None, rows("s0"))


def test_a_report_whose_own_answer_is_not_sent_expects_no_row(tmp_path):
    """The definition takes 0 of 0 and 1; the engine took the other, and sent it."""
    sampled = "SELECT (SAMPLE(?o) AS ?x) { ?s ?p ?o } HAVING(SAMPLE(?o) = <urn:o1>)"
    run = right_run(replace(RSPQL, notify_empty=False), text=TEXT, sparql=sampled, advance=15)
    other = Answer(("x",), rows("o1"), instant=5)
    window = shown(replace(run, answers=(other, *run.answers)), tmp_path, 0)
    assert (window.content, window.expected) == (tuple(triples("s0 p o0. s1 p o1.")), ())
    assert window.received == rows("o1")


@pytest.mark.parametrize(("witnesses", "received"), [(1, rows("s1 s2")), (0, None)], ids=["kept", "not kept"])
@pytest.mark.parametrize("grain", [Grain.ROW, Grain.REPORT])
def test_rows_of_an_answer_in_parts_are_told_by_the_witnesses(tmp_path, grain, witnesses, received):
    """A row each, or changes: the first window's answer has s2 for s0."""
    run = right_run(replace(RSPQL, grain=grain), text=TEXT, advance=15)
    if grain is Grain.ROW:
        answers = [replace(one, added=rows("s2")) if one.added == rows("s0") else one for one in run.answers]
    else:
        changes = [("s2 s1", ""), ("", "s2"), ("s2", "s1")]
        pairs = zip(run.answers, changes, strict=True)
        answers = [replace(one, added=rows(came), removed=rows(went)) for one, (came, went) in pairs]
    window = shown(replace(run, answers=tuple(answers)), tmp_path, 0, witnesses)
    assert window.expected == rows("s0 s1")
    assert window.received == received


def test_by_the_clock_of_arrivals_a_window_holds_what_had_arrived(tmp_path):
    """Each element is handed over 3 ms after its time: o1 of 4 arrives at 7."""
    run = right_run(replace(RSPQL, clock=Clock.ARRIVAL), text=TEXT, advance=15)
    late = replace(run, fed=tuple(replace(fed, handed=fed.handed + 3_000_000) for fed in run.fed))
    write(stream(TEXT), tmp_path / "stream.parquet")
    verdict = judge_run(late, tmp_path / "stream.parquet", Means(pytest.fail, "definition"))
    window = opened(late, tmp_path / "stream.parquet", verdict, 1)
    assert (window.content, window.expected) == (tuple(triples("s1 p o1. s1 p o2.")), rows("s1 s1"))


def test_a_report_that_is_not_there_is_refused_with_those_that_are(tmp_path):
    run = recorded(RSPQL, "s0 s1", "s1", "s2")
    with pytest.raises(NoWindowError, match="--window 3: the verdict has 3 reports, 0 to 2"):
        shown(run, tmp_path, 3)
    nothing = replace(check(run, definition(stream(TEXT)), 0, JudgingRules()), windows=())
    with pytest.raises(NoWindowError, match=r"the verdict has 0 reports$"):
        opened(run, tmp_path / "stream.parquet", nothing, 0)
