"""Progress of long commands: a line every ten seconds where no terminal is, one mechanism for all commands."""

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from streamgauge.cli import terminal
from streamgauge.cli.terminal import ProgressLog, Reason, telling
from streamgauge.model.phrases import elapsed


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


def log_of(clock, detail=lambda: ""):
    lines = []
    return ProgressLog("run", lines.append, clock, 10.0, detail), lines


def test_a_line_comes_every_ten_seconds_whatever_is_told(clock):
    log, lines = log_of(clock)
    for second in range(60):
        clock.now = 100 + second
        log.tell(f"step {second}", second / 100)
    assert lines == [f"run: step {at}, {at}%, after {at} s" for at in (10, 20, 30, 40, 50)]


def test_a_line_comes_also_when_nothing_new_is_told(clock):
    log, lines = log_of(clock)
    log.tell("judging")
    assert log.beat() == 10
    clock.now += 9.5
    assert (log.beat(), lines) == (0.5, [])
    clock.now += 0.5
    assert (log.beat(), lines) == (10, ["run: judging, after 10 s"])
    clock.now += 10
    assert (log.beat(), lines[1:]) == (10, ["run: judging, after 20 s"])


def test_a_reason_is_told_once(clock):
    log, lines = log_of(clock)
    log.tell("judging")
    log.tell(Reason("spark: the definition would take longer"))
    for _ in range(2):
        clock.now += 10
        log.beat()
    assert lines == [
        "run: judging by spark: the definition would take longer, after 10 s",
        "run: judging, after 20 s",
    ]


def test_the_share_never_goes_back_and_what_runs_elsewhere_is_said(clock):
    log, lines = log_of(clock, lambda: "Spark: 3 of 40 tasks")
    log.tell("first", 0.5)
    clock.now += 10
    log.tell("second", 0.0)
    assert lines == ["run: second, 50%, after 10 s; Spark: 3 of 40 tasks"]


@pytest.mark.parametrize(("seconds", "words"), [(9.9, "9 s"), (130, "2 min 10 s"), (11_100, "3 h 5 min")])
def test_times_in_words(seconds, words):
    assert elapsed(seconds) == words


def test_a_thread_prints_while_the_command_is_busy(monkeypatch):
    monkeypatch.setattr(terminal, "LEAST", 0.001)
    file = StringIO()
    with telling(Console(file=file), "check", every=0.01) as tell:
        tell("[bold]judging[/bold]")
        while file.getvalue().count("\n") < 3:
            pass
    assert file.getvalue().splitlines()[-1] == "check: [bold]judging[/bold], after 0 s"


def test_a_terminal_has_one_moving_line():
    file = StringIO()
    with telling(Console(file=file, force_terminal=True, width=80), "run") as tell:
        tell("[judging]", 0.25)
    assert "run: [judging]" in file.getvalue()
    assert "\n\n" not in file.getvalue()


WEATHER = """[workload]
name = "weather"
stations = 2
duration = "4s"
[query]
file = "q.rq"
[[engine]]
name = "live"
semantics = "csparql"
[feed]
pace = 20
"""
QUERY = """REGISTER STREAM <urn:out> AS SELECT ?s FROM NAMED WINDOW <urn:w> ON <http://ex.org/streams/test>
[RANGE PT2S STEP PT2S] WHERE { WINDOW <urn:w> { ?s ?p ?o } }"""


@pytest.fixture
def here(tmp_path, monkeypatch, command, undrawn):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "e.toml").write_text(WEATHER)
    (tmp_path / "q.rq").write_text(QUERY)
    assert command("generate", "weather", "--stations", "2", "--duration", "4s", "--out", "weather").code == 0
    return command


@pytest.mark.server
def test_every_long_command_tells_how_far_it_is(here, monkeypatch):
    monkeypatch.setattr(terminal, "EVERY", 0.0)
    words = {
        "generate weather: ": ("generate", "weather", "--stations", "2", "--out", "w.nt", "--format", "ntriples"),
        "run: ": ("run", "e.toml", "--out", "runs"),
        "check: ": ("check", "runs/live-csparql-seed0-1"),
        "explain: ": ("explain", "runs/live-csparql-seed0-1"),
        "expect: ": ("expect", "q.rq", "--stream", "weather", "--semantics", "csparql"),
        "certify live: ": ("certify", "live", "--case", "tumbling windows are half-open", "--semantics", "own"),
        "capacity: ": ("capacity", "e.toml", "--to", "20", "--lasting", "100ms", "--out", "capacity"),
    }  # fmt: skip
    for begins, command in words.items():
        said = here(*command)
        assert any(line.startswith(begins) and ", after " in line for line in said.err.splitlines()), said
        assert begins not in said.out


@pytest.mark.server
def test_a_master_that_was_not_needed_is_said(here):
    from streamgauge.cli.spark import spark

    spark.cache_clear()
    words = {
        ("expect", "q.rq", "--stream", "weather", "--semantics", "csparql"): "; --evaluator spark takes Spark",
        ("run", "file.toml", "--out", "runs"): "",
        ("check", "runs/live-csparql-seed0-1"): "; --evaluator spark takes Spark",
    }
    recorded = WEATHER.replace('name = "weather"\nstations = 2\nduration = "4s"', 'file = "weather/part-0.parquet"')
    Path("file.toml").write_text(recorded)
    for command, hint in words.items():
        said = here(*command, "--master", "local[3]")
        assert said.code == 0
        assert (
            f"--master local[3] had no effect: the work is small, so this process did it and no Spark was started{hint}"
            in said.err
        )
