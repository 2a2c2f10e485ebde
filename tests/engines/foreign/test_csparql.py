"""C-SPARQL on the pipe: every window right by its external clock; what it needs and what it refuses is said."""

import json
import subprocess
from collections import Counter
from dataclasses import replace

import pytest

from streamgauge.engines import command, load
from streamgauge.formats.lines import decode_output, encode_advance, encode_element
from streamgauge.formats.pipe import CLOSE, CLOSED, GO, READY, PipeError, Task, encode_task, word
from streamgauge.semantics.definition import expected
from streamgauge.semantics.profiles import CSPARQL_097, CSPARQL_097_WALL
from tests.engines.foreign.given import AVERAGE, SELECT, asked, here, said, weather
from tests.notation import STREAM, stream

pytestmark = pytest.mark.server


@pytest.mark.parametrize(("head", "slide"), [(SELECT, 5), (SELECT, 1), (AVERAGE, 5), ("ASK", 5)])
def test_every_window_is_right(head, slide):
    here("csparql")
    query, elements = asked(head, slide=slide), (*stream("0: a p b."), *weather(20, 20))
    answers = said("csparql", query, CSPARQL_097, elements, 20_000)
    wanted = expected(elements, query, CSPARQL_097, 20_000, 0)
    assert [answer.instant for answer in answers] == [report.due.instant for report in wanted]
    for answer, report in zip(answers, wanted, strict=True):
        assert near(answer.added) == near(report.rows)


def test_the_first_triple_of_a_stream_counts_as_of_the_tick_before_it():
    """Its release notes say so: the first element is put before the clock is; others of its time are not."""
    here("csparql")
    query, elements = asked(), tuple(weather(20, 5))
    (answer,) = said("csparql", query, CSPARQL_097, elements, 5000)
    (report,) = expected(elements, query, CSPARQL_097, 5000, 0)
    first = elements[0].added[0][0]
    assert Counter(report.rows) - Counter(answer.added) == {row: 1 for row in report.rows if row[0] == first} != {}


def near(rows) -> Counter:
    """The bag of rows, averages to three places: the engine computes them as xsd:float."""
    return Counter(
        tuple(f"{float(term[1 : term.index(chr(34), 1)]):.3f}" if "#float" in term else term for term in row)
        for row in rows
    )


def test_one_process_answers_task_after_task_and_refuses_what_its_parser_stops_at():
    here("csparql")
    elements = [*map(encode_element, weather(3, 7)), encode_advance(10_000)]
    task = Task(text(asked()), "csparql", CSPARQL_097)
    lines = [
        encode_task(task),
        *elements,
        CLOSE,
        encode_task(replace(task, query="SELECT")),
        encode_task(task),
        *elements,
    ]
    first, rest = run(lines).split(CLOSED)
    refused, *again = rest.splitlines(keepends=True)
    assert word(refused).said == "refused"
    assert b"".join(again) == first


def test_preloaded_input_is_answered_when_it_may_go():
    here("csparql")
    elements = [*map(encode_element, weather(3, 7)), encode_advance(10_000)]
    task = Task(text(asked()), "csparql", CSPARQL_097)
    loaded = encode_task(replace(task, options={"preload": True}))
    plain, preloaded = run([encode_task(task), *elements]), run([loaded, *elements, GO, GO])
    assert preloaded == READY + plain


def test_by_the_wall_clock_the_last_windows_close_after_the_input():
    here("csparql")
    task = Task(text(asked(size=2, slide=1)), "csparql", CSPARQL_097_WALL, options={"settle": 2500})
    lines = run([encode_task(task), *map(encode_element, weather(20, 1))]).splitlines()
    answers = [decode_output(line) for line in lines[1:]]
    assert {answer.instant for answer in answers} == {None}
    above = {item.added[0][0] for item in weather(20, 1) if float(item.added[2][2].split('"')[1]) > 50}
    assert {row[0] for answer in answers for row in answer.added} == above


def test_terms_come_back_as_they_were():
    here("csparql")
    terms = [
        "<urn:first>",
        "<urn:a>",
        '"a b"',
        '"x"@en',
        '"5"^^<http://www.w3.org/2001/XMLSchema#integer>',
        '"1\\n2"',
        '"\\u00e9"',
    ]
    elements = [
        f'{{"t":{100 * n},"n":{n},"stream":"{STREAM}","add":{json.dumps(f"<urn:s{n}> <urn:p> {term} .")}}}\n'.encode()
        for n, term in enumerate(terms)
    ]
    query = f"REGISTER QUERY q AS SELECT ?o FROM STREAM <{STREAM}> [RANGE 1s STEP 1s] WHERE {{ ?s <urn:p> ?o }}"
    (line,) = run([encode_task(Task(query, "csparql", CSPARQL_097)), *elements, encode_advance(1000)]).splitlines()[1:]
    assert {row[0] for row in decode_output(line).added} == {*terms[1:6], '"é"'}


def test_what_ends_cannot_be_taken_away():
    here("csparql")
    with pytest.raises(PipeError, match="element 0: this engine cannot take triples away"):
        said("csparql", asked(), CSPARQL_097, stream("1..3: a p b."), 5000)


def text(query) -> str:
    from streamgauge.query import print_query

    return print_query(query, "csparql")


def run(lines: list[bytes]) -> bytes:
    program = command(load("csparql"))
    done = subprocess.run(program, input=b"".join(lines), capture_output=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    return done.stdout
