"""`live` in one process and over two, in turn, through the pipe: wall and CPU of the whole, and how the work is shared.

python -m benchmarks.shards [--cases select/5s ...] [--shards 2] [--stations 10000] [--seconds 20] [--repeat 3]

The stream is YABench's, the window 5 s or 10 s with the case's slide. A gain is to be had where evaluation costs more
than the pipe: reading elements and writing answers stays with one process. CPU is user and system time of the whole
process tree from the moment at which it can take elements to its end; wall ends with the last answer. Wall shows a gain
only where that many cores are idle: CPU of several over CPU of one is the price of being several, and bounds the gain.
"""

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from benchmarks.measure import OneOf, options, weather_text, write_weather
from benchmarks.results import ResultTable
from benchmarks.stations import PREFIXES, STREAM
from streamgauge.engines import live
from streamgauge.formats.stream import StoredStream
from streamgauge.harness.systems.pipe import RunLimits, program, record
from streamgauge.model.run import Run, RunHeader
from streamgauge.query import parse
from streamgauge.semantics.profiles import CSPARQL
from streamgauge.suites.experiments.plan import stream_facts

HEAVY = {
    "greatest": ("?sensor (MAX(?value - ?other) AS ?greatest)", "", "GROUP BY ?sensor"),
    "regex": ("?obs", 'FILTER(REGEX(CONCAT(STR(?sensor), "/", STR(?value)), "A[0-9]+7/.*5"))', ""),
}
"""Evaluated at more cost than its elements are read: the greatest difference at a station, and text of each row."""

CHEAP = "select/5s"
GOAL = 1.7

OTHER = "?obs2 om-owl:procedure ?sensor ; om-owl:result ?res2 . ?res2 om-owl:floatValue ?other ."

CASES = {
    "select/5s": ("select", "5s", {"TEMP": "50.0"}, 1),
    "select/1s": ("select", "1s", {"TEMP": "50.0"}, 1),
    "average/5s": ("average", "5s", {"TEMP": "50.0"}, 1),
    "average/1s": ("average", "1s", {"TEMP": "50.0"}, 1),
    "self-join/5s": ("variation", "5s", {"VARIATION_THRESHOLD": "0.0"}, 20),
    "self-join/1s": ("variation", "1s", {"VARIATION_THRESHOLD": "0.0"}, 20),
    "regex/5s": ("regex", "5s", {}, 1),
    "regex/1s": ("regex", "1s", {}, 1),
    "greatest/5s": ("greatest", "5s", {}, 1),
    "greatest/10s": ("greatest", "10s", {}, 1),
}
"""Query, slide, parameters, and by how much fewer stations there are."""


SIZES = {"1s": "5s", "5s": "5s", "10s": "10s"}
"""The size of the window for a slide."""


def text_of(query: str, slide: str, parameters: dict[str, str]) -> str:
    """A query of the workload or one of ``HEAVY``, as RSP-QL."""
    if query not in HEAVY:
        return weather_text(query, WSIZE=SIZES[slide], WSLIDE=slide, **parameters)
    selected, more, tail = HEAVY[query]
    pattern = "?obs om-owl:procedure ?sensor ; om-owl:result ?res . ?res om-owl:floatValue ?value ."
    pattern += f" {OTHER if '?other' in selected else more}"
    window = f"FROM NAMED WINDOW <{STREAM}/w> ON <{STREAM}> [RANGE {SIZES[slide]} STEP {slide}]"
    where = f"WHERE {{ WINDOW <{STREAM}/w> {{ {pattern} }} }} {tail}"
    return f"{PREFIXES} REGISTER <{STREAM}/answers> AS SELECT {selected} {window} {where}"


def header(name: str, seconds: int, shards: int) -> RunHeader:
    query, slide, parameters, _ = CASES[name]
    text = text_of(query, slide, parameters)
    options_ = {"shards": shards} if shards > 1 else {}
    return RunHeader("live", parse(text), text, "rspql", CSPARQL, seconds * 1000, 0, options=options_)


def run(name: str, arguments: argparse.Namespace, shards: int, stream: Path) -> tuple[float, float, int]:
    """Wall and CPU (s) of one run, and how many rows it answered."""
    recorded = record(header(name, arguments.seconds, shards), program("live"), StoredStream(stream), RunLimits())
    if recorded.header.failure:
        raise SystemExit(recorded.header.failure)
    return _wall(recorded), recorded.header.cpu or 0.0, sum(len(answer.added) for answer in recorded.answers)


def _wall(recorded: Run) -> float:
    return (max(answer.received for answer in recorded.answers) - recorded.header.started) / 1e9


def compare(name: str, arguments: argparse.Namespace, table: ResultTable, stream: Path) -> None:
    """One process and several in turn, so often; medians."""
    triples = stream_facts(stream).triples
    runs = [[run(name, arguments, shards, stream) for shards in (1, arguments.shards)] for _ in range(arguments.repeat)]
    rows = {rows for pair in runs for _, _, rows in pair}
    assert len(rows) == 1, f"{name}: rows differ, {rows}"
    assert rows != {0}, f"{name}: there are no rows"
    wall, cpu = ([median(pair[side][at] for pair in runs) for side in (0, 1)] for at in (0, 1))
    micro = [f"{seconds_ / triples * 1e6:.2f}" for seconds_ in cpu]
    sharding = live.sharding([(header(name, 1, 1).query, CSPARQL)], arguments.shards)
    table.add(name, *(f"{seconds_:.2f}" for seconds_ in wall), f"{wall[0] / wall[1]:.2f}x", *micro,
              f"{cpu[1] / cpu[0]:.2f}x", sharding)  # fmt: skip


def _gains(rows: Sequence[Sequence[str]]) -> tuple[str, bool]:
    """The gain at select and the greatest one, which is held to the goal."""
    gains = {row[0]: float(row[3].rstrip("x")) for row in rows}
    most = max(gains, key=gains.__getitem__)
    cheap = f"{gains[CHEAP]:.2f}x at {CHEAP}, " if CHEAP in gains else ""
    return f"{cheap}{gains[most]:.2f}x at {most}", gains[most] >= GOAL


def main() -> None:
    arguments = options(__doc__, cases=OneOf(CASES), shards=2, stations=10_000, seconds=20, repeat=3)
    columns = ("case", "wall s, one", "several", "gain", "CPU us a triple, one", "several", "price", "sharding")
    with tempfile.TemporaryDirectory() as folder, ResultTable("shards", columns, summary=_gains) as table:
        for name in arguments.cases:
            stations = arguments.stations // CASES[name][3]
            stream = Path(folder) / f"stream-{stations}"
            if not stream.exists():
                write_weather(stream, stations=stations, interval="1s", duration=f"{arguments.seconds}s")
            compare(name, arguments, table, stream)


if __name__ == "__main__":
    main()
