"""``check`` from the command line: exit codes, other queries, semantics and rules, borders, what is kept."""

import json
from dataclasses import replace

import pytest

from streamgauge.formats.run import read_verdict, write_run
from streamgauge.formats.stream import write
from streamgauge.model.query import StreamWindow, Window
from streamgauge.query import print_query
from streamgauge.semantics.profiles import RSPQL
from tests.notation import STREAM, stream
from tests.oracle.runs import right_run

TEXT = " | ".join(f"{t}: s{t % 3} p {t}." for t in range(20))


def folder(path, change=lambda run: run, name=STREAM):
    """A run folder with a right run (windows of 5 ms over 20) that ``change`` made wrong."""
    run = right_run(RSPQL, text=TEXT)
    query = replace(run.header.query, windows=(StreamWindow(name, Window(5, 5), None),))
    text = print_query(query, "csparql")
    run = change(replace(run, header=replace(run.header, query=query, query_text=text, dialect="csparql")))
    write_run(path / "run", run)
    write(stream(TEXT), path / "run" / "stream.parquet")
    return path / "run"


def wrong(run):
    """The second window's first row is the third's."""
    first, second, third, *rest = run.answers
    return replace(run, answers=(first, replace(second, added=(*second.added[1:], third.added[0])), third, *rest))


def test_right_wrong_and_late_have_exit_codes_of_their_own(tmp_path, command):
    right = folder(tmp_path / "a")
    code, out, _ = command("check", right, "--json")
    assert (code, json.loads(out)["judgement"]) == (0, "right")
    code, out, _ = command("check", right, "--max-delay", "1ms", "--json")
    assert (code, json.loads(out)["late"]) == (0, 0)
    late = folder(tmp_path / "b", lambda run: replace(run, answers=tuple(slow(one) for one in run.answers)))
    code, out, _ = command("check", late, "--max-delay", "1s", "--json")
    result = json.loads(out)
    assert (code, result["judgement"], result["late"]) == (5, "right but late", 4)
    assert read_verdict(late).judgement == "right but late"
    assert command("check", folder(tmp_path / "c", wrong))[0] == 1


def slow(answer):
    return replace(answer, received=answer.received + 2_000_000_000)


def test_another_query_judges_in_place_of_the_runs(tmp_path, command):
    run = folder(tmp_path)
    plain = tmp_path / "oracle.query"
    plain.write_text("SELECT ?s { ?s <urn:p> ?v FILTER(?v < ${LIMIT}) }")
    assert command("check", run, "--query", plain, "-D", "LIMIT=100")[0] == 0
    code, out, _ = command("check", run, "--query", plain, "-D", "LIMIT=12", "--json")
    result = json.loads(out)
    assert (code, result["recall"], [window["expected"] for window in result["windows"]]) == (1, 1.0, [5, 5, 2, 0])
    assert not (run / "verdict.json").exists()
    assert command("check", run, "--query", plain, "-D", "LIMIT=12", "--keep")[0] == 1
    assert read_verdict(run).judgement == "wrong"
    own = tmp_path / "own.rq"
    own.write_text(f"SELECT ?s FROM NAMED WINDOW <urn:w> ON <{STREAM}> [RANGE PT0.01S STEP PT0.01S]"
                   " WHERE { WINDOW <urn:w> { ?s <urn:p> ?v } }")  # fmt: skip
    code, out, _ = command("check", run, "--query", own, "--json")
    assert (code, [window["expected"] for window in json.loads(out)["windows"] if window["due"]]) == (1, [10, 10])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--query", "missing.query"], "cannot be read"),
        (["--query", "{plain}"], "the parameter LIMIT has no value"),
        (["--query", "{plain}", "-D", "LIMIT=1", "-D", "X=2"], "the query has no parameter X"),
        (["--query", "{broken}"], "line 1, column"),
        (["-D", "X=2"], "name the file"),
        (["--semantics", "nobodys"], "nobodys"),
        (["--rules", "nobody"], "choose from csrbench"),
        (["--rules", "csrbench", "--max-delay", "1s"], "have neither"),
        (["--max-delay", "soon"], "such as 500ms"),
        (["--evaluator", "changes"], "choose from definition, spark"),
    ],
)
def test_bad_input_is_a_sentence(tmp_path, command, words, message):
    run = folder(tmp_path)
    (tmp_path / "plain").write_text("SELECT ?s { ?s <urn:p> ?v FILTER(?v < ${LIMIT}) }")
    (tmp_path / "broken").write_text("SELECT ?s { ?s <urn:p> }")
    filled = [word.format(plain=tmp_path / "plain", broken=tmp_path / "broken") for word in words]
    code, _, error = command("check", run, *filled)
    assert code == 2
    assert message in " ".join(error.replace("│", " ").split())


def test_a_query_over_another_stream_names_both(tmp_path, command):
    run = folder(tmp_path, name="http://ex.org/streams/else")
    code, out, _ = command("check", run, "--json")
    result = json.loads(out)
    assert (code, result["judgement"]) == (4, "unknown")
    assert "<http://ex.org/streams/else>" in result["reason"]
    assert f"<{STREAM}>" in result["reason"]


def test_gracious_borders_are_printed_and_kept(tmp_path, command):
    def shifted(run):
        """The rows of 7 to 11; those of 4 to 8 are the same, and nearer."""
        rows = tuple((f"<urn:s{t % 3}>",) for t in range(7, 12))
        first, second, *rest = run.answers
        return replace(run, answers=(first, replace(second, added=rows), *rest))

    run = folder(tmp_path, shifted)
    code, out, _ = command("check", run, "--gracious", "--json")
    window = json.loads(out)["windows"][1]
    assert (code, window["borders"], window["fitted"]) == (1, [4, 9], [1.0, 1.0])
    assert read_verdict(run).windows[1].borders == (4, 9)
    assert "1 fits exactly under other borders" in command("check", run, "--gracious")[1]


def test_published_rules_judge_in_place_of_ours(tmp_path, command):
    run = folder(tmp_path)
    code, out, _ = command("check", run, "--rules", "csrbench", "--json")
    assert (code, json.loads(out)["rules"]) == (0, "csrbench")
    assert not (run / "verdict.json").exists()


def test_the_evaluator_of_the_engine_is_refused_by_name(tmp_path, command):
    own = folder(tmp_path, lambda run: replace(run, header=replace(run.header, evaluator="spark")))
    code, out, err = command("check", own, "--evaluator", "spark")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert "computed its answers by spark, which may not judge them: give --evaluator definition" in err
