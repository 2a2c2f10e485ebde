"""``query``: answers as they come, for people and for programs; what cannot be is said in a sentence."""

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from rich.console import Console

from streamgauge.cli import query as command
from streamgauge.cli.answers import Shown
from streamgauge.cli.main import main
from streamgauge.formats.lines import decode_answer, encode_element
from streamgauge.formats.streams import read_stream
from streamgauge.model.answer import Answer
from streamgauge.query import parse
from streamgauge.semantics.profiles import RSPQL
from tests.notation import STREAM, stream

WINDOW = f"FROM NAMED WINDOW <urn:w> ON <{STREAM}> [RANGE PT${{SIZE}}S STEP PT5S]"
SELECT = f"PREFIX ex: <urn:> SELECT ?s ?o {WINDOW} WHERE {{ WINDOW <urn:w> {{ ?s ex:p ?o }} }}"
CONSTRUCT = f"CONSTRUCT {{ ?s <urn:seen> ?o }} {WINDOW} WHERE {{ WINDOW <urn:w> {{ ?s <urn:p> ?o }} }}"
ELEMENTS = stream("0: a p 1. | 3000: b p 'x'. | 6000: a p c. | 7000: d q e.")


@pytest.fixture
def here(tmp_path):
    (tmp_path / "select.rq").write_text(SELECT)
    (tmp_path / "construct.rq").write_text(CONSTRUCT)
    (tmp_path / "in.jsonl").write_bytes(b"".join(map(encode_element, ELEMENTS)))
    return tmp_path


@pytest.fixture
def ask(here, monkeypatch, capfdbinary):
    def call(query, *words, code=0):
        monkeypatch.setattr(sys, "argv", ["streamgauge", "query", str(here / query), "-D", "SIZE=5", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        output = capfdbinary.readouterr()
        assert b"Traceback" not in output.err
        assert ended.value.code == code, output.err
        return output.out.decode(), output.err.decode()

    return call


def test_first_window_and_end_as_dates_and_instants_as_dates(ask, here):
    old = stream("-86400000: a p 1. | -86396000: b p 2.")
    (here / "old.jsonl").write_bytes(b"".join(map(encode_element, old)))
    words = ("--stream", here / "old.jsonl", "--advance-to", "1969-12-31T00:00:10Z", "--format", "csv")
    dated, _ = ask("select.rq", *words, "--t0", "1969-12-31", "--dates")
    assert [line.split(",")[:5] for line in dated.splitlines()[1:]] == [
        ["1969-12-31T00:00:05Z", "1969-12-31T00:00:00Z", "1969-12-31T00:00:05Z", "+", f"urn:{name}"] for name in "ab"
    ]
    plain, _ = ask("select.rq", *words, "--t0=-1d")
    assert plain.splitlines()[1].startswith("-86395000,-86400000,-86395000,+,urn:a,")
    table, _ = ask("select.rq", *words[:-1], "table", "--t0", "-1d", "--dates")
    assert table.startswith("1969-12-31 00:00:05Z  [1969-12-31 00:00:00Z .. 1969-12-31 00:00:05Z]  2 rows")
    _, err = ask("select.rq", *words[:-1], "jsonl", "--dates", code=2)
    assert "jsonl has times in ms, as its readers expect: use --dates with csv or table" in err
    _, err = ask("select.rq", *words, "--t0", "yesterday", code=2)
    assert "'yesterday': expected ms, a duration such as 30s or -30s, or a date" in err


def test_a_property_that_no_element_has_is_named(ask, here):
    (here / "other.rq").write_text(SELECT.replace("ex:p ?o", "ex:p ?o ; ex:temperature ?t"))
    out, err = ask("other.rq", "--stream", here / "in.jsonl", "--advance-to", "windows")
    assert [len(decode_answer(line).added) for line in out.splitlines()] == [0, 0]
    assert err.endswith(
        "streamgauge: note: no element has the property <urn:temperature> that the query asks for; there are "
        "<urn:p>, <urn:q>\n"
    )


def test_properties_of_static_data_are_not_asked_of_elements(ask, here):
    (here / "other.rq").write_text(SELECT.replace("ex:p ?o", "ex:q ?o").replace("} }", "} ?s ex:name ?n }"))
    (here / "names.ttl").write_text("<urn:e> <urn:name> 'e' .")
    _, err = ask("other.rq", "--stream", here / "in.jsonl", "--static", here / "names.ttl")
    assert "note: no element" not in err


def test_json_lines_where_nobody_looks(ask, here):
    out, err = ask("select.rq", "--stream", here / "in.jsonl", "--advance-to", "windows")
    answers = [decode_answer(line) for line in out.splitlines()]
    assert [(answer.instant, len(answer.added)) for answer in answers] == [(5000, 2), (10_000, 1)]
    assert err == "4 elements; 2 answers; time reached 12,000 ms\n"


def test_csv_has_plain_values(ask, here):
    out, _ = ask("select.rq", "--stream", here / "in.jsonl", "--format", "csv", "--advance-to", "windows")
    rows = list(csv.reader(io.StringIO(out)))
    assert rows[0] == ["instant", "start", "end", "change", "s", "o"]
    assert sorted(rows[1:3]) == [["5000", "0", "5000", "+", "urn:a", "1"], ["5000", "0", "5000", "+", "urn:b", "x"]]
    assert rows[3:] == [["10000", "5000", "10000", "+", "urn:a", "urn:c"]]


def test_graphs_are_a_stream_again(ask, here):
    out, _ = ask("construct.rq", "--stream", here / "in.jsonl", "--format", "nquads", "--advance-to", "10s")
    (here / "out.nq").write_text(out)
    elements = list(read_stream(here / "out.nq", stream=STREAM))
    assert [(item.time, len(item.added)) for item in elements] == [(5000, 2), (10_000, 1)]
    assert elements[1].added == (("<urn:a>", "<urn:seen>", "<urn:c>"),)


def test_answers_go_to_a_sink(ask, here):
    out, _ = ask("select.rq", "--stream", here / "in.jsonl", "--to", here / "out.jsonl", "--advance-to", "10s")
    assert out == ""
    assert [json.loads(line)["instant"] for line in (here / "out.jsonl").read_text().splitlines()] == [5000, 10_000]


def test_limit_and_where_time_ends(ask, here):
    out, err = ask("select.rq", "--stream", here / "in.jsonl", "--limit", 1)
    assert (len(out.splitlines()), err) == (1, "3 elements; 1 answer; time reached 6,000 ms\n")
    out, _ = ask("select.rq", "--stream", here / "in.jsonl", "--advance-to", "20s")
    assert [json.loads(line)["instant"] for line in out.splitlines()] == [5000, 10_000, 15_000, 20_000]


def test_late_elements_are_said(ask, here):
    with (here / "in.jsonl").open("ab") as file:
        file.write(encode_element(stream("1000: late p late.")[0]))
    _, err = ask("select.rq", "--stream", here / "in.jsonl", "--lateness", "1s", "--advance-to", "windows")
    assert err == "5 elements, 1 of them late and dropped; 2 answers; time reached 12,000 ms\n"


def test_a_table_for_people():
    console = Console(file=io.StringIO(), width=80)
    query = parse(SELECT.replace("${SIZE}", "5"))
    show = Shown(console, query, RSPQL, {"ex": "urn:", "other": "http://o/"})
    show(
        Answer(
            ("s", "o"),
            (("<urn:a>", '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'),),
            (),
            "solutions",
            5000,
            (0, 5000),
        )
    )
    show(Answer(("s", "o"), (), (("_:b", None),), "solutions", 1_700_000_000_500))
    lines = [line.rstrip() for line in console.file.getvalue().splitlines()]
    assert lines[0] == "5 s  [0 s .. 5 s]  1 row"
    assert lines[3].split() == ["ex:a", "1"]
    assert lines[4] == "2023-11-14 22:13:20.500Z  1 row"
    assert lines[7].split() == ["-", "_:b"]


def test_the_terminal_gets_the_table(ask, here, monkeypatch):
    monkeypatch.setattr(command.sys.stdout, "isatty", lambda: True, raising=False)
    out, _ = ask("select.rq", "--stream", here / "in.jsonl", "--format", "table")
    assert "5 s  [0 s .. 5 s]  2 rows" in out
    assert "ex:b" in out


@pytest.mark.parametrize(
    ("query", "words", "says"),
    [
        ("select.rq", ("--stream", "nowhere.nq"), "no such file"),
        ("nowhere.rq", ("--stream", "in.jsonl"), "nowhere.rq"),
        ("select.rq", ("--stream", "in.jsonl", "--format", "nquads"), "CONSTRUCT"),
        ("select.rq", ("--stream", "in.jsonl", "--format", "xml"), "choose from table, jsonl"),
        ("select.rq", ("--stream", "in.jsonl", "--lateness", "soon"), "duration"),
        ("select.rq", ("--stream", "in.jsonl", "--semantics", "nobody"), "no semantics named"),
        ("select.rq", ("--stream", "in.jsonl", "--engine", "nobody"), "unknown engine"),
        ("select.rq", ("--stream", "in.jsonl", "-D", "SIZE"), "NAME=VALUE"),
        ("select.rq", ("--stream", "urn:other=in.jsonl"), "urn:other"),
    ],
)
def test_what_cannot_be(ask, here, monkeypatch, query, words, says):
    monkeypatch.chdir(here)
    _, err = ask(query, *words, code=2)
    assert says in err


def start(here: Path, *words) -> subprocess.Popen[bytes]:
    program = [sys.executable, "-c", "from streamgauge.cli.main import main; main()", "query"]
    return subprocess.Popen(
        [*program, here / "select.rq", "-D", "SIZE=5", *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),  # what runs in the background ignores it
    )


@pytest.mark.server
def test_standard_input_and_control_c(here):
    running = start(here, "--stream", "-")
    assert running.stdin is not None
    assert running.stdout is not None
    running.stdin.write(b"".join(map(encode_element, ELEMENTS)))
    running.stdin.flush()
    first = running.stdout.readline()
    assert json.loads(first)["instant"] == 5000
    time.sleep(0.2)
    os.kill(running.pid, signal.SIGINT)
    out, err = running.communicate(timeout=300)
    assert (out, running.returncode) == (b"", 130)
    assert err == b"4 elements; 1 answer; time reached 7,000 ms\n"


@pytest.mark.server
def test_a_reader_that_leaves_ends_it(here):
    running = start(here, "--stream", here / "in.jsonl", "--advance-to", "100000s")
    assert running.stdout is not None
    running.stdout.readline()
    running.stdout.close()
    running.stdout = None
    _, err = running.communicate(timeout=300)
    assert b"Traceback" not in err
    assert running.returncode == 0
