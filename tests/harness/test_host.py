"""The process of an engine in Python: input that comes in any pieces, tasks behind each other, errors in the middle."""

import io
from dataclasses import replace

import pytest

from streamgauge.formats.lines import LineError, encode_advance, encode_element
from streamgauge.formats.pipe import CLOSE, CLOSED, GO, READY, Task, encode_task
from streamgauge.harness.host import serve
from streamgauge.model.element import StreamElement
from streamgauge.model.semantics import Clock
from streamgauge.semantics.profiles import CQELS_1, RSPQL

pytestmark = pytest.mark.server

QUERY = """SELECT ?s ?o FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE 5s STEP 5s]
WHERE { WINDOW <urn:w> { ?s <urn:p> ?o } }
"""
STREAM = [StreamElement("urn:s", 100 * n, n, ((f"<urn:{n}>", "<urn:p>", '"a b"'),)) for n in range(120)]
CHANGES = replace(CQELS_1, clock=Clock.APPLICATION)
LINES = [*map(encode_element, STREAM), encode_advance(15_000)]


def task(**options: object) -> bytes:
    return encode_task(Task(QUERY, "rspql", RSPQL, (), options))


def served(given: bytes, room: int) -> list[bytes]:
    out = io.BytesIO()
    serve("live", io.BufferedReader(io.BytesIO(given), room), out)
    return out.getvalue().splitlines(keepends=True)


@pytest.fixture(scope="module")
def answers() -> list[bytes]:
    result = served(b"".join([task(), *LINES]), 1 << 20)
    assert result[0] == READY
    assert [line.count(b'["<urn:') for line in result[1:]] == [50, 50, 20]
    return result[1:]


@pytest.mark.parametrize("room", [1, 100, 1000, 1 << 16])
def test_tasks_one_behind_the_other_in_any_pieces(room, answers):
    first = [task(), *LINES, CLOSE]
    second = [task(preload=True), *LINES, GO, GO, CLOSE]
    result = served(b"".join([*first, *second, task(), *LINES]), room)
    assert result == [READY, *answers, CLOSED, READY, READY, *answers, CLOSED, READY, *answers]


def test_a_last_line_without_its_end_is_taken(answers):
    assert served(b"".join([task(), *LINES])[:-1], 64) == [READY, *answers]


@pytest.mark.parametrize("wrong", [b'{"t":1}\n', b"\n", b"{\n", b'{"t":1,"n":1,"stream":"urn:s","add":"a"}\n'])
def test_what_came_before_a_wrong_line_is_answered(wrong, answers):
    out = io.BytesIO()
    given = b"".join([task(), *LINES[:110], wrong, *LINES[110:]])
    with pytest.raises(LineError):
        serve("live", io.BufferedReader(io.BytesIO(given), 1 << 20), out)
    assert out.getvalue() == READY + b"".join(answers[:2])


def test_each_change_is_a_report_whatever_comes_together():
    task = Task(QUERY, "rspql", CHANGES, (), {})
    both = StreamElement("urn:s", 5, 0, tuple((f"<urn:{n}>", f"<urn:{'pq'[n % 2]}>", "<urn:o>") for n in range(6)))
    result = served(encode_task(task) + encode_element(both), 1 << 16)
    assert [line.count(b'["<urn:') for line in result] == [0, 1, 1, 1]
