"""Recording engines that behave, crash, hang, flood and babble; the feeder against a clock that is ours."""

import sys
import textwrap
from dataclasses import replace

import pytest

from streamgauge.formats.lines import Advance, decode_input
from streamgauge.harness.pace import PacedFeeder, RunPace, feed_fast
from streamgauge.harness.systems.pipe import RunLimits, record
from streamgauge.model.semantics import Due
from streamgauge.oracle.judging.metrics import ADVANCE, feeder_lateness
from streamgauge.semantics.profiles import RSPQL
from tests.notation import stream
from tests.oracle.runs import right_run

pytestmark = pytest.mark.server

ELEMENTS = stream("0: a p b. | 3: b p c. | 3: c p d. | 40: d p e.")

PRELUDE = """
import json, sys, time
task = json.loads(sys.stdin.readline())
def say(data):
    print(json.dumps(data), flush=True)
"""
READY = "print('{\"ready\":true}', flush=True)\n"
ECHO = """
for line in sys.stdin:
    given = json.loads(line)
    if "advance" in given:
        say({"vars": ["s"], "add": [], "instant": given["advance"]})
    else:
        say({"vars": ["s"], "add": [[given["add"].split()[0]]], "instant": given["t"]})
"""


def engine(tmp_path, body: str) -> list[str]:
    script = tmp_path / "engine.py"
    script.write_text(textwrap.dedent(PRELUDE) + READY + textwrap.dedent(body))
    return [sys.executable, str(script)]


def header(factor: float | None = None):
    return replace(right_run(RSPQL).header, advanced_to=50, factor=factor)


def test_answers_are_recorded_in_order_and_stamped(tmp_path):
    run = record(header(), engine(tmp_path, ECHO), ELEMENTS, RunLimits(30))
    assert run.header.failure is None
    assert [answer.added for answer in run.answers[:-1]] == [((f"<urn:{s}>",),) for s in "abcd"]
    assert run.answers[-1].instant == 50
    assert all(answer.received >= run.header.started for answer in run.answers)
    assert [fed.sequence for fed in run.fed] == [0, 1, 2, 3, ADVANCE]
    assert all(fed.handed >= fed.planned for fed in run.fed)


def test_the_task_reaches_the_engine(tmp_path):
    body = 'say({"vars": ["q"], "add": [[json.dumps(task["semantics"]["name"])]]})\nsys.stdin.read()'
    run = record(header(), engine(tmp_path, body), ELEMENTS, RunLimits(30))
    assert run.answers[0].added == (('"rspql"',),)


def test_resources_are_sampled(tmp_path):
    run = record(header(), engine(tmp_path, "sys.stdin.read()\ntime.sleep(1.2)"), ELEMENTS, RunLimits(30))
    assert len(run.samples) >= 2
    assert all(sample.rss > 1_000_000 and sample.threads >= 1 for sample in run.samples)


@pytest.mark.parametrize(
    ("body", "limits", "words"),
    [
        ("sys.stdin.readline()\nraise RuntimeError('broken on purpose')", RunLimits(30), "broken on purpose"),
        ("sys.stdin.read()\nsys.exit(7)", RunLimits(30), "exit code 7"),
        ("time.sleep(60)", RunLimits(1), "still running after its time limit of 1 s"),
        ("while True: print('x' * 1000)", RunLimits(30, output=100_000), "a flood"),
        ("print('hello')\nsys.stdin.read()", RunLimits(30), "line 1 of the engine's output is not an answer"),
    ],
    ids=["crash", "exit", "hang", "flood", "babble"],
)
def test_a_failure_is_recorded_and_explained(tmp_path, body, limits, words):
    run = record(header(), engine(tmp_path, body), ELEMENTS, limits)
    assert run.header.failure is not None
    assert words in run.header.failure


def test_what_was_observed_before_a_crash_is_kept(tmp_path):
    body = 'say({"vars": ["s"], "add": [["<urn:a>"]], "instant": 5})\nsys.stdin.read()\nsys.exit(1)'
    run = record(header(), engine(tmp_path, body), ELEMENTS, RunLimits(30))
    assert run.header.failure
    assert run.answers[0].added == (("<urn:a>",),)
    assert len(run.fed) == 5


class FakeClock:
    """A clock that only sleeping and writing move."""

    def __init__(self) -> None:
        self.now = 1_000_000_000

    def __call__(self) -> int:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += round(seconds * 1e9)


def test_a_paced_feeder_hands_over_on_time_and_says_how_far_time_has_come():
    clock = FakeClock()
    written: list[bytes] = []
    elements = stream("0: a p b. | 100: b p c. | 100: c p d. | 400: d p e.")
    fed = PacedFeeder(RunPace(2.0, 0, 500), written.append, clock, clock.sleep).feed(elements, clock())
    handed = {f.sequence: (f.handed - 1_000_000_000) / 1e6 for f in fed if f.sequence != ADVANCE}
    assert handed == {0: 0.0, 1: 50.0, 2: 50.0, 3: 200.0}
    given = [decode_input(line) for line in written]
    advances = [g.time for g in given if isinstance(g, Advance)]
    assert advances == sorted(advances)
    assert advances[-1] == 500
    assert len([a for a in advances if 100 < a < 400]) >= 2
    last = 0
    for g in given:
        assert g.time >= last
        last = max(last, g.time - 1 if isinstance(g, Advance) else g.time)


@pytest.mark.parametrize("pace", [RunPace(2.0, 0, 500, Due.LAST), RunPace(2.0, 0, 500, lateness=50)])
def test_only_the_end_is_told_where_telling_would_change_the_answer(pace):
    clock = FakeClock()
    written: list[bytes] = []
    PacedFeeder(pace, written.append, clock, clock.sleep).feed(stream("0: a p b. | 400: d p e. | 380: c p d."), clock())
    given = [decode_input(line) for line in written]
    assert [g.time for g in given if isinstance(g, Advance)] == [500]
    assert [g.time for g in given if not isinstance(g, Advance)] == [0, 400, 380]


def test_a_feeder_that_is_late_says_so():
    clock = FakeClock()

    def late():
        clock.now += 5_000_000
        yield from ELEMENTS

    fed = feed_fast(late(), RunPace(None, 0, 50), lambda _line: None, clock)
    run = replace(right_run(RSPQL), fed=tuple(fed))
    assert feeder_lateness(run) == (5.0, 5.0)


@pytest.mark.parametrize("factor", [None, 1.0])
def test_an_element_is_handed_over_before_an_answer_to_it_can_come(factor):
    """Stamps are of the moment before the write, however long that takes."""
    clock, begun = FakeClock(), list[int]()

    def slow(line: bytes) -> None:
        begun.extend([clock.now] * line.count(b"\n"))
        clock.now += 5_000_000

    pace = RunPace(factor, 0, 50)
    if factor is None:
        fed = feed_fast(ELEMENTS, pace, slow, clock)
        assert fed[0].handed == begun[0]
    else:
        fed = PacedFeeder(pace, slow, clock, clock.sleep).feed(ELEMENTS, clock())
    assert all(item.handed <= when for item, when in zip(fed, begun, strict=True))


BURNER = """
import sys, time
def burn(until):
    while time.process_time() < until:
        pass
sys.stdin.readline()
burn(0.5)
print('{"ready":true}', flush=True)
for line in sys.stdin:
    pass
burn(0.8)
"""


def test_cpu_time_counts_from_the_start_of_the_feed(tmp_path):
    script = tmp_path / "burner.py"
    script.write_text(BURNER)
    run = record(header(), [sys.executable, str(script)], ELEMENTS, RunLimits(30))
    assert run.header.failure is None
    assert run.header.cpu == pytest.approx(0.3, abs=0.1)
