"""The runner over the tenth of our own making, over a wrong evaluator, and what it prints."""

from collections import Counter
from pathlib import Path

import pytest

from streamgauge.model.terms import triple_term
from tests.w3c import systems
from tests.w3c.__main__ import main, outcomes, summary
from tests.w3c.own import EVALUATIONS, SYNTAX, write_suite
from tests.w3c.results import Answer, difference
from tests.w3c.suites import Kind, read


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("w3c")
    write_suite(folder, 1)
    return folder


@pytest.mark.slow
def test_the_tenth_is_right_on_every_evaluator(suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--data", str(suite)]) == 0, capsys.readouterr().out
    printed = capsys.readouterr().out
    assert "wrong:" not in printed
    tests, _ = read(suite)
    assert Counter(test.kind for test in tests)[Kind.ACCEPTED] == SYNTAX
    assert len([test for test in tests if test.kind is Kind.EVALUATION]) > EVALUATIONS
    refused = printed.count("refused:")
    assert refused <= 3 * len(tests) * 0.02


def test_a_wrong_answer_is_seen(
    suite: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def loses_a_row(case: systems.Case) -> tuple[object, ...]:
        return (systems.by_definition(case) or ())[1:]

    monkeypatch.setitem(systems.IN_PROCESS, "definition", loses_a_row)
    assert main(["--data", str(suite), "--only", "triple-terms", "--on", "definition"]) == 1
    assert "wrong: sparql12/triple-terms/t0 on definition: expected 1 rows" in capsys.readouterr().out


def test_a_parser_that_accepts_all_is_seen(suite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(systems, "read_sparql", lambda *_: None)
    tests, left = read(suite)
    broken = [test for test in tests if test.kind is Kind.REFUSED]
    results = list(outcomes(suite, broken, []))
    assert {result.verdict for result in results} == {systems.WRONG}
    assert f"{'sparql11 refused query':26}reader{0:14}{0:9}{SYNTAX:7}" in summary(results, left)


def test_a_folder_without_tests_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--data", str(tmp_path)])
    assert "give a copy of w3c/rdf-tests" in capsys.readouterr().err


A, B = "_:a", "_:b"
INNER = triple_term((A, "<urn:p>", '"1.0"^^<http://www.w3.org/2001/XMLSchema#decimal>'))


@pytest.mark.parametrize(
    ("wanted", "result", "same"),
    [
        ([(A, B)], [("_:x", "_:y")], True),
        ([(A, B)], [("_:x", "_:x")], False),
        ([(A, A)], [("_:x", "_:y")], False),
        ([(A, B), (B, A)], [("_:x", "_:y"), ("_:y", "_:x")], True),
        ([(A, B), (B, A)], [("_:x", "_:y"), ("_:x", "_:y")], False),
        ([(A, INNER)], [(B, INNER.replace("_:a", "_:b").replace("1.0", "1.00"))], True),
        ([(A, INNER)], [(A, INNER.replace("_:a", "_:b"))], False),
        ([('"x"@en-GB', None)], [('"x"@en-gb', None)], True),
        ([("<urn:a>", None)], [("<urn:a>", '""')], False),
        ([("<urn:a>", "<urn:b>")] * 2, [("<urn:a>", "<urn:b>")], False),
    ],
)
def test_comparison(wanted: list[tuple], result: list[tuple], same: bool) -> None:
    columns = ("x", "y")
    assert (difference(Answer(columns, tuple(wanted)), Answer(columns, tuple(result))) == "") is same
    assert difference(Answer(("x", "z"), ()), Answer(columns, ())) != ""


def test_rows_in_order_and_rows_that_may_repeat() -> None:
    rows = (("<urn:a>",), ("<urn:b>",))
    one, other = Answer(("x",), rows, ordered=True), Answer(("x",), rows[::-1], ordered=True)
    assert difference(one, other) != ""
    assert difference(one, Answer(("x",), rows[::-1])) == ""
    assert difference(one, Answer(("x",), rows * 2, ordered=True), lax=True) == ""
