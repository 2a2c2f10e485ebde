"""Realistic runs and verdicts, made up: what the report is tested on, and what its looks are judged by."""

import random
from dataclasses import replace

from streamgauge.model.algebra import BGP, Call, Filter, Project, Select, TriplePattern, Var
from streamgauge.model.answer import Answer
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.run import Fed, Run, RunHeader, Sample
from streamgauge.model.semantics import R2S, Borders, Origin, Report, Semantics, Tick
from streamgauge.model.terms import XSD, Row
from streamgauge.model.verdict import Diagnosis, Judgement, Part, Verdict, WindowVerdict

Judged = tuple[Run, Verdict]

SSN = "http://example.org/ssn#"
TEXT = f"""PREFIX ssn: <{SSN}>
PREFIX :    <http://example.org/stations/>
REGISTER RSTREAM <hot> AS
SELECT ?station ?value
FROM NAMED WINDOW :w ON :weather [RANGE PT5S STEP PT5S]
WHERE {{ WINDOW :w {{ ?o ssn:station ?station ; ssn:temperature ?value . FILTER(?value > 30) }} }}"""
VALUE, STATION = Var("value"), Var("station")
QUERY = ContinuousQuery(
    form=Select(
        Project(
            Filter(
                Call(">", (VALUE, f'"30"^^<{XSD}float>')),
                BGP(
                    (
                        TriplePattern(Var("o"), f"<{SSN}station>", STATION),
                        TriplePattern(Var("o"), f"<{SSN}temperature>", VALUE),
                    )
                ),
            ),
            (STATION, VALUE),
        ),
        ("station", "value"),
    ),
    windows=(StreamWindow("http://example.org/stations/weather", Window(5000, 5000), "http://example.org/stations/w"),),
    r2s=R2S.RSTREAM,
    name="hot stations",
)
SOURCES = {
    "report": "C-SPARQL 0.9.7, measured",
    "borders": "C-SPARQL 0.9.7, documented and measured",
    "t0": "CSRBench, section 5",
}
CSPARQL = Semantics(
    "csparql",
    frozenset({Report.WINDOW_CLOSE, Report.NON_EMPTY}),
    Tick.TIME,
    borders=Borders.OPEN_CLOSED,
    origin=Origin.FIRST,
    time_unit=1000,
    sources=SOURCES,
)
CQELS = Semantics(
    "cqels",
    frozenset({Report.CONTENT_CHANGE, Report.NON_EMPTY}),
    Tick.BATCH,
    R2S.ISTREAM,
    notify_empty=False,
    time_unit=100,
)
KILLED = "The engine's process ended with signal 9 after 12.4 s; give it more memory or a smaller window."
START = 5_000_000_000_000


def header(engine: str = "live", semantics: Semantics = CSPARQL, **changes: object) -> RunHeader:
    """A header of a paced run of 100 s."""
    run_header = RunHeader(
        engine=engine,
        query=QUERY,
        query_text=TEXT,
        dialect="rspql",
        semantics=semantics,
        advanced_to=100_000,
        started=START,
        factor=1.0,
        workload={"name": "weather", "stations": 50, "interval": "1s", "duration": "100s", "seed": 1430236808},
        versions={"streamgauge": "0.1.0", "python": "3.11.7", "pyoxigraph": "0.5.13"},
        machine={"processor": "2 cores, 2.4 GHz", "memory": "8 GiB", "system": "Linux 6.1"},
    )
    return replace(run_header, **changes)


def row(number: int) -> Row:
    return f"<http://example.org/stations/S{number}>", f'"{30 + number / 4:g}"^^<{XSD}float>'


def window(index: int, draw: random.Random, slide: int = 5000, size: int = 5000) -> WindowVerdict:
    """A right one."""
    close = size + index * slide
    rows = 40 + int(12 * draw.random())
    delay = 4 + rows / 8 + draw.expovariate(0.4)
    return WindowVerdict(
        index, close - size, close, close, index, 1.0, 1.0, rows, rows, rows, 1740 + draw.randrange(20), delay
    )


def spoilt(good: WindowVerdict, lost: int, extra: int) -> WindowVerdict:
    """The same window with so many rows missing and surplus; 7 witnesses of each at most."""
    common = good.expected - lost
    actual = common + extra
    return replace(
        good,
        precision=common / actual,
        recall=common / good.expected,
        true_positives=common,
        actual=actual,
        missing=tuple(row(number) for number in range(min(7, lost))),
        surplus=tuple(row(100 + number) for number in range(min(7, extra))),
    )


def missed(good: WindowVerdict) -> WindowVerdict:
    return replace(good, report=None, precision=0.0, recall=0.0, true_positives=0, actual=0, delay=None)


def verdict(windows: list[WindowVerdict], judgement: Judgement = Judgement.RIGHT, **changes: object) -> Verdict:
    common, actual = sum(one.true_positives for one in windows), sum(one.actual for one in windows)
    delays = [one.delay for one in windows if one.delay is not None]
    verdict = Verdict(
        judgement,
        "definition",
        0,
        common / actual if actual else 0.0,
        common / max(1, sum(one.expected for one in windows)),
        sum(one.report is None for one in windows),
        0,
        0,
        max(delays, default=None),
        ("station", "value"),
        tuple(windows),
        tolerance="xsd:float relative 1e-5",
        last_answer=100_004.2,
    )
    return replace(verdict, **changes)


def observed(made: RunHeader, windows: list[WindowVerdict], draw: random.Random, rss: int = 180) -> Run:
    """A run with samples every 500 ms and two hundred fed elements."""
    answers = tuple(
        Answer(("station", "value"), (row(1),), instant=one.instant, received=START + 1_000_000 * (one.instant or 0))
        for one in windows
        if one.report is not None
    )
    fed = tuple(_fed(number, draw) for number in range(200))
    samples = tuple(_sample(number, rss, draw) for number in range(202))
    return Run(made, answers, fed, samples)


def _fed(number: int, draw: random.Random) -> Fed:
    planned = START + number * 500_000_000
    return Fed(number, number * 500, planned, planned + int(draw.expovariate(2e-6)))


def _sample(number: int, rss: int, draw: random.Random) -> Sample:
    size = rss * 2**20 + 400_000 * (number % 40) + draw.randrange(2**20)
    return Sample(
        START + (number - 1) * 500_000_000, size, 2.2, 18 + 30 * (number % 10 == 9) + draw.random() * 8, 5 + number % 3
    )


def right(semantics: Semantics = CSPARQL, **changes: object) -> Judged:
    draw = random.Random(str(changes))
    windows = [window(index, draw) for index in range(20)]
    return observed(header(semantics=semantics, **changes), windows, draw), verdict(windows)


def wrong(engine: str = "csparql", **changes: object) -> Judged:
    """Three windows with wrong rows, one missed, one surplus report."""
    draw = random.Random(engine)
    windows = [window(index, draw) for index in range(20)]
    windows[3], windows[7], windows[12] = spoilt(windows[3], 4, 2), spoilt(windows[7], 11, 0), spoilt(windows[12], 0, 5)
    windows[15] = missed(windows[15])
    windows.append(
        WindowVerdict(20, None, None, None, 20, 0.0, 0.0, 0, 0, 3, 0, None, surplus=(row(1), row(2), row(3)), due=False)
    )
    judged = verdict(windows, Judgement.WRONG, surplus=1, other_clock=("arrival", 0.98, 0.97))
    return observed(header(engine, **changes), windows, draw, 420), judged


def fitted() -> Judged:
    """Wrong windows explained by other borders: all but one exactly, one row of a window undecided."""
    draw = random.Random(6)
    windows = [window(index, draw) for index in range(12)]
    for index, good in enumerate(windows):
        start, end = good.start or 0, good.end or 0
        windows[index] = replace(good, borders=(start, end), fitted=(1.0, 1.0))
        if index in (2, 3, 4, 7, 8):
            moved = (start + 900 * (index % 3) - 700, end + 150 * (index % 4))
            windows[index] = replace(spoilt(good, 5, 3), borders=moved, fitted=(1.0, 0.9 if index == 8 else 1.0))
    windows[5] = replace(windows[5], undecided=2, doubtful=(row(7), row(8)))
    windows[10] = missed(replace(windows[10], borders=None, fitted=None))
    part = Part("borders", "Each window starts up to one slide early.")
    other = Part("slide", "SLIDE is ignored")
    diagnosis = Diagnosis(((part,), (other, part)), 0, 6, 11, t0=1000)
    judged = verdict(windows, Judgement.WRONG, undecided=2, diagnosis=diagnosis)
    return observed(header("cqels", CQELS), windows, draw), judged


def late() -> Judged:
    run, judged = right(engine="spark")
    windows = [replace(one, delay=(one.delay or 0) + 900) for one in judged.windows]
    return run, verdict(windows, Judgement.LATE, late=20, max_delay=1010.0)


def failed(
    sentence: str = KILLED,
) -> Judged:
    draw = random.Random(4)
    windows = [window(index, draw) for index in range(20)]
    windows[2:] = [missed(one) for one in windows[2:]]
    made = header("cqels", CQELS, failure=sentence)
    return observed(made, windows, draw, 610), verdict(windows, Judgement.WRONG)


def unknown() -> Judged:
    reason = "A window would hold about 12,000,000 triples, over the limit of 4,000,000: raise it or use Spark."
    return Run(header("rsp-js"), (), ()), verdict(
        [], Judgement.UNKNOWN, reason=reason, evaluator=None, t0=None, last_answer=None
    )


def repetitions(count: int = 10) -> list[Judged]:
    """As many runs of two engines each; one of them loses rows in some windows of some repetitions."""
    runs = []
    for number in range(1, count + 1):
        runs.append(right(repetition=number, workload={"name": "weather", "stations": 50, "seed": number}))
        draw = random.Random(number)
        windows = [window(index, draw) for index in range(20)]
        windows = [spoilt(one, draw.randrange(1, 9), 0) if draw.random() < 0.2 else one for one in windows]
        made = header("csparql", repetition=number, workload={"name": "weather", "stations": 50, "seed": number})
        word = Judgement.RIGHT if all(one.right for one in windows) else Judgement.WRONG
        runs.append((observed(made, windows, draw, 400), verdict(windows, word)))
    return runs


def large(reports: int = 30_000, bad: int = 2_000) -> Judged:
    """A content-change run of many reports, ``bad`` of them with witnesses."""
    draw = random.Random(9)
    windows = [window(index, draw, 50) for index in range(reports)]
    for place in draw.sample(range(reports), bad):
        windows[place] = spoilt(windows[place], 9, 9)
    run = observed(header("cqels", CQELS), windows, draw)
    fed = tuple(_fed(number, draw) for number in range(reports))
    return replace(run, fed=fed), verdict(windows, Judgement.WRONG)
