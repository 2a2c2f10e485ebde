"""`live` and `spark` beside C-SPARQL, CQELS, YASPER, rsp-js, rsp-rs and a ceiling: same stream, same windows, one run.

python -m benchmarks.engines [--quick] [--only select/big csparql ...] [--modes pipe lines preload] [--seconds 30] ...

YABench's experiments 1 (select), 2 (average) and 3 (variation, a self-join), small, medium and big, as window close
5 s/5 s and 5 s/1 s and as content change. Every engine runs under its own semantics, and `live` under the same ones
(CQELS's on application time: `live` has no clock of its own), each in a process of its own behind the pipe, fed as
fast as it takes elements. `rsp-rs` and `star`, joins on ids written by hand for differential-dataflow, are built by
cargo where that is (native_peers.py). ``pipe`` counts everything from the first element to the last answer, parsing
included; ``lines`` is the same for `live` when it is given JSON lines as the others are, not Arrow; ``preload`` begins
when all input is in the engine's memory: as terms, for `live` and `star` as numbered terms. CPU is user + system time
of the process tree from that moment to its end (for a tree that does not wait for its parts, as sampled); wall ends
with the last answer; RSS is the peak of the tree, 0 for a run too short to be sampled. The verdict is the oracle's, on
the run through the pipe; a preloaded run must say the same. Ratios are the peer's figure over `live`'s. ``--quick``
does a choice of cases, those that have a goal among them. Runs are kept in ``--out`` and not done again; results.jsonl
there has one line a run. ``--profile CASE`` says where `live` spends its time.
"""

import argparse
import cProfile
import io
import json
import os
import pstats
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from benchmarks import native_peers
from benchmarks.measure import OneOf, options, weather_text, write_weather
from benchmarks.results import ResultTable, goals_reached
from streamgauge.engines import EngineError, dialect, evaluator, load, names, profiles
from streamgauge.formats.lines import encode_advance, encode_element
from streamgauge.formats.pipe import Task, encode_task
from streamgauge.formats.run import RunError, read_run, write_run
from streamgauge.formats.stream import StoredStream, elements
from streamgauge.harness import made_once
from streamgauge.harness.host import LINES_ONLY, serve
from streamgauge.harness.resources import machine, versions
from streamgauge.harness.systems.pipe import RunLimits, program, record, task_of
from streamgauge.model.element import StreamElement
from streamgauge.model.run import Run, RunHeader
from streamgauge.model.semantics import Clock, Semantics
from streamgauge.oracle.judging.judge import Means, judge_run
from streamgauge.query import parse
from streamgauge.semantics.profiles import profile
from streamgauge.suites.experiments.plan import link, stream_facts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOADS = {
    "select": (1430236906, {"TEMP": "50.0"}, {"small": 50, "medium": 1000, "big": 10_000}),
    "average": (1430237208, {"TEMP": "50.0"}, {"small": 50, "medium": 1000, "big": 10_000}),
    "variation": (1430236808, {"VARIATION_THRESHOLD": "0.0"}, {"small": 50, "medium": 200, "big": 500}),
}
"""Seed, parameters, and stations by load of each query's experiment."""

KINDS = {"5s/5s": ("5s", "5s"), "5s/1s": ("5s", "1s"), "change": ("5s", "5s")}
"""Size and slide."""

PEERS = {"close": ("csparql", "rspjs", "yasper", "spark", *native_peers.SEMANTICS), "change": ("cqels",)}
"""The engines beside `live`, each under the first of its semantics, which `live` takes too; `spark` as RSP-QL."""


class Goal(NamedTuple):
    """How many times `live`'s ``figure`` a peer's should be at least, in a case and mode."""

    name: str
    peer: str
    mode: str
    figure: str
    least: float


GOALS = (
    Goal("select/big/5s/5s", "csparql", "pipe", "CPU", 15.0),
    Goal("select/big/5s/5s", "csparql", "pipe", "wall", 8.0),
    Goal("select/big/5s/5s", "csparql", "pipe", "memory", 30.0),
    Goal("average/big/5s/5s", "csparql", "pipe", "CPU", 5.0),
    Goal("average/big/5s/5s", "csparql", "pipe", "wall", 5.0),
    Goal("select/medium/5s/1s", "csparql", "pipe", "CPU", 10.0),
    Goal("select/medium/5s/1s", "csparql", "pipe", "wall", 10.0),
    Goal("variation/big/5s/5s", "csparql", "pipe", "CPU", 5.0),
    Goal("variation/big/5s/5s", "csparql", "pipe", "wall", 5.0),
    Goal("select/big/change", "cqels", "pipe", "CPU", 30.0),
    Goal("select/medium/5s/5s", "rspjs", "pipe", "CPU", 100.0),
    Goal("variation/big/5s/5s", "rsp-rs", "preload", "CPU", 10.0),
)

_BOTH, _PIPE = ("pipe", "preload"), ("pipe",)

QUICK = {
    ("select/medium/5s/5s", "rspjs"): _BOTH,
    ("select/medium/5s/5s", "yasper"): _PIPE,
    ("select/medium/5s/1s", "csparql"): _PIPE,
    ("select/medium/5s/1s", "rsp-rs"): _BOTH,
    ("select/medium/5s/1s", "star"): _BOTH,
    ("select/big/5s/5s", "csparql"): ("pipe", "lines", "preload"),
    ("select/big/5s/5s", "yasper"): _PIPE,
    ("select/big/5s/5s", "rsp-rs"): _BOTH,
    ("select/big/5s/5s", "star"): _BOTH,
    ("select/big/5s/1s", "star"): _BOTH,
    ("average/big/5s/5s", "csparql"): _PIPE,
    ("variation/big/5s/5s", "csparql"): _PIPE,
    ("variation/big/5s/5s", "rsp-rs"): _BOTH,
    ("variation/big/5s/5s", "star"): _BOTH,
    ("select/big/change", "cqels"): _PIPE,
}
"""The modes of the cases and peers of ``--quick``, which take some minutes together on an idle machine."""

SPARK_GOAL = 400_000
"""Triples a second of wall time that `spark` should do at select/big/5s/5s."""

LIMIT_S = 900.0


@dataclass(frozen=True)
class EngineCase:
    """One run to measure; ``name`` is query/load/window."""

    name: str
    engine: str
    semantics: Semantics
    mode: str

    @property
    def key(self) -> str:
        """The name of the folder that keeps the runs of this case."""
        return f"{self.name}-{self.engine}-{self.semantics.name}-{self.mode}".replace("/", "_")

    @property
    def parts(self) -> tuple[str, str, str]:
        """Query, load and kind."""
        query, scale, kind = self.name.split("/", 2)
        return query, scale, kind


@dataclass(frozen=True)
class Figures:
    """The cost of a run (s, MiB) and its verdict, or why the run is none."""

    name: str
    engine: str
    semantics: str
    mode: str
    triples: int
    cpu: float
    wall: float
    rss: float
    reports: int
    rows: int
    verdict: str
    load: float
    failure: str = ""

    @property
    def rate(self) -> float:
        """Triples a second of wall time."""
        return self.triples / self.wall if self.wall else 0.0


def own_semantics(engine: str) -> str:
    """The name of the first profile that an engine has; RSP-QL's for one that has any, or is not there."""
    if engine in native_peers.SEMANTICS:
        return native_peers.SEMANTICS[engine]
    return (profiles(load(engine)) or ("rspql",))[0] if engine in names() else "rspql"


def semantics_of(engine: str, name: str) -> Semantics:
    """The profile; where its clock is not the application's and the engine is `live`, on application time."""
    known = profile(name)
    if engine == "live" and known.clock is not Clock.APPLICATION:
        return replace(known, name=f"{name} on application time", clock=Clock.APPLICATION)
    return known


def cases(modes: Sequence[str], wanted: Callable[[EngineCase], bool]) -> Iterator[EngineCase]:
    """Every case, each peer's beside `live`'s under the same semantics."""
    cases_: dict[str, EngineCase] = {}
    names = (f"{query}/{scale}/{kind}" for query, (_, _, loads) in LOADS.items() for scale in loads for kind in KINDS)
    for name in names:
        for peer, mode in product(peers_of(name), modes):
            for engine in ("live",) if mode == "lines" else (peer, "live"):
                case = EngineCase(name, engine, semantics_of(engine, own_semantics(peer)), mode)
                cases_.setdefault(case.key, case)
    return filter(wanted, cases_.values())


def peers_of(name: str) -> Iterator[str]:
    """The peers of a case: those in Rust are asked some queries only."""
    query, _, kind = name.split("/", 2)
    for peer in PEERS["change" if kind == "change" else "close"]:
        if query in native_peers.QUERIES.get(peer, LOADS):
            yield peer


def program_of(case: EngineCase, header: RunHeader) -> tuple[list[str], Task]:
    """The command of the case's engine and its task; EngineError where it is not there, or refuses."""
    if case.engine in native_peers.SEMANTICS:
        return native_peers.command(case.engine), task_of(header, "rspql")
    engine = load(case.engine)
    if reason := engine.refuse(header.query, case.semantics):
        raise EngineError(f"refuses: {reason}")
    command = [*program(case.engine), *([LINES_ONLY] if case.mode == "lines" else [])]
    return command, task_of(header, dialect(engine))


def header_of(case: EngineCase, stream: Path, seconds: int) -> RunHeader:
    query, scale, kind = case.parts
    size, slide = KINDS[kind]
    text = weather_text(query, WSIZE=size, WSLIDE=slide, **LOADS[query][1])
    return RunHeader(
        engine=case.engine,
        query=parse(text),
        query_text=text,
        dialect="rspql",
        semantics=case.semantics,
        advanced_to=seconds * 1000,
        started=0,
        evaluator=None if case.engine in native_peers.SEMANTICS else evaluator(load(case.engine)),
        workload={"name": "weather", "load": scale, "triples": stream_facts(stream).triples},
        versions=versions(),
        machine={**machine(), "load": os.getloadavg()[0]},
        options={"preload": True} if case.mode == "preload" else {},
    )


def measure(case: EngineCase, stream: Path, seconds: int, out: Path) -> Run | str:
    """The recorded run, kept in its folder; a sentence when the engine is not there or refuses."""
    folder = out / case.key
    try:
        return read_run(folder, parse)
    except RunError:
        pass
    try:
        header = header_of(case, stream, seconds)
        command, task = program_of(case, header)
    except EngineError as error:
        return str(error)
    run = record(header, command, StoredStream(stream), RunLimits(LIMIT_S), task=task)
    write_run(folder, run)
    link(stream, folder / "stream")
    return run


def figures(case: EngineCase, run: Run, verdict: str) -> Figures:
    header = run.header
    ended = max((answer.received for answer in run.answers), default=header.started)
    if case.mode != "preload":
        ended = max([ended, *(fed.handed for fed in run.fed[-1:])])
    return Figures(
        name=case.name,
        engine=case.engine,
        semantics=case.semantics.name,
        mode=case.mode,
        triples=int(str(header.workload["triples"])),
        cpu=max(header.cpu or 0.0, sampled(run)),
        wall=(ended - header.started) / 1e9,
        rss=max((sample.rss for sample in run.samples), default=0) / 2**20,
        reports=len(run.answers),
        rows=sum(len(answer.added) for answer in run.answers),
        verdict=verdict,
        load=float(str(header.machine.get("load", 0.0))),
        failure=header.failure or "",
    )


def sampled(run: Run) -> float:
    """CPU seconds from the feed's start on, summed over the samples: what a tree used that nobody waited for."""
    total, before = 0.0, run.header.started
    for sample in run.samples:
        if sample.at > before:
            total += sample.cpu_percent / 100 * (sample.at - before) / 1e9
            before = sample.at
    return total


def said(run: Run) -> Counter[object]:
    """The answers as a bag: what a preloaded run must say like the other."""
    return Counter((answer.instant, row) for answer in run.answers for row in answer.added)


def judged(case: EngineCase, run: Run, out: Path, spark: "Callable[[], SparkSession]") -> str:
    """The oracle's word with precision and recall; of another than through the pipe, whether it says the same."""
    if case.mode != "pipe":
        try:
            other = read_run(out / replace(case, mode="pipe").key, parse)
        except RunError:
            return "not judged: no run through the pipe"
        return "same" if said(other) == said(run) else "other answers than through the pipe"
    kept = out / case.key / "verdict.txt"
    if not kept.exists():
        verdict = judge_run(run, out / case.key / "stream", Means(spark))
        shares = f" {verdict.precision:.4f}/{verdict.recall:.4f}" if not verdict.reason else f": {verdict.reason}"
        kept.write_text(f"{verdict.judgement}{shares}")
    return kept.read_text()


def stream_of(case: EngineCase, seconds: int, out: Path) -> Path:
    """The stream table of the case's experiment and load."""
    query, scale, _ = case.parts
    seed, _, loads = LOADS[query]
    size = {"stations": loads[scale], "duration": f"{seconds}s"}
    return made_once(out / "streams" / f"{query}-{scale}-{seconds}", lambda folder: write_weather(folder, seed, **size))


@cache
def oracle() -> "SparkSession":
    from streamgauge.spark.session import session

    return session("local[2]", memory="4g", shuffle=4)


def wanted_by(arguments: argparse.Namespace) -> Callable[[EngineCase], bool]:
    """The choice of cases: the quick ones, or those whose name or engine has every word given."""
    quick = {(name, peer, mode) for (name, peer), modes in QUICK.items() for mode in modes}
    beside = {(name, semantics_of("live", own_semantics(peer)).name, mode) for name, peer, mode in quick}

    def wanted(case: EngineCase) -> bool:
        own = (case.name, case.semantics.name if case.engine == "live" else case.engine, case.mode)
        if arguments.quick and own not in (beside if case.engine == "live" else quick):
            return False
        return all(word in case.name or word == case.engine for word in arguments.only)

    return wanted


def main() -> None:
    arguments = options(
        __doc__, quick=False, only=("",), modes=OneOf(("pipe", "lines", "preload")), seconds=30, out=Path,
        without_verdicts=False, profile="",
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as scratch:
        out = arguments.out or Path(scratch)
        out.mkdir(parents=True, exist_ok=True)
        if arguments.profile:
            case = EngineCase(arguments.profile, "live", semantics_of("live", "csparql-0.9.7"), "pipe")
            stream = stream_of(case, arguments.seconds, out)
            profiled(header_of(case, stream, arguments.seconds), elements(stream))
        else:
            compare(arguments, out)


def compare(arguments: argparse.Namespace, out: Path) -> None:
    todo = list(cases(arguments.modes, wanted_by(arguments)))
    streams = {case.parts[:2]: stream_of(case, arguments.seconds, out) for case in todo}
    print(f"{len(todo)} runs; load of the machine {os.getloadavg()[0]:.1f}; {machine()}", flush=True)
    runs: list[tuple[EngineCase, Run]] = []
    silent: dict[str, list[str]] = {}
    for number, case in enumerate(todo, 1):
        outcome = measure(case, streams[case.parts[:2]], arguments.seconds, out)
        if isinstance(outcome, str):
            silent.setdefault(f"{case.engine}: {outcome}", []).append(case.name)
            continue
        runs.append((case, outcome))
        line = figures(case, outcome, "")
        print(
            f"[{number}/{len(todo)}] {case.key}: CPU {line.cpu:.2f} s, wall {line.wall:.2f} s {line.failure}",
            flush=True,
        )
    lines = []
    with (out / "results.jsonl").open("w", encoding="utf-8") as results:
        for case, run in runs:
            verdict = "not judged" if arguments.without_verdicts else judged(case, run, out, oracle)
            lines.append(figures(case, run, verdict))
            results.write(json.dumps(asdict(lines[-1])) + "\n")
    show(lines, silent)


def show(lines: Sequence[Figures], silent: dict[str, list[str]]) -> None:
    """Every run, every ratio with its goal, and who was not there."""
    columns = ("case", "engine", "mode", "CPU s", "wall s", "triples/s", "RSS MiB", "reports", "rows", "verdict",
               "machine's load")  # fmt: skip
    with ResultTable("engines", columns) as table:
        for one in lines:
            table.add(
                one.name, f"{one.engine} as {one.semantics}", one.mode, f"{one.cpu:.2f}", f"{one.wall:.2f}",
                f"{one.rate:,.0f}", f"{one.rss:,.0f}", f"{one.reports:,}", f"{one.rows:,}", one.failure or one.verdict,
                f"{one.load:.1f}",
            )  # fmt: skip
    ratios = ("case", "peer / live", "mode", "CPU", "wall", "memory", "goal")
    with ResultTable("engines_ratios", ratios, summary=goals_reached) as table:
        for one in lines:
            if one.engine != "live" and (own := beside(one, lines)) is not None:
                table.add(one.name, one.engine, one.mode, *ratio_cells(one, own))
            elif one.mode == "lines" and (own := beside(replace(one, mode="pipe"), lines)) is not None:
                table.add(one.name, f"live on lines, as {one.semantics}", one.mode, *ratio_cells(one, own))
    for why, where in silent.items():
        print(f"\n{why} ({', '.join(dict.fromkeys(where))})")


def beside(one: Figures, lines: Sequence[Figures]) -> Figures | None:
    """`live`'s figures under the same semantics."""
    name = semantics_of("live", one.semantics).name
    return next((own for own in lines if own.engine == "live" and (own.name, own.semantics, own.mode)
                 == (one.name, name, one.mode)), None)  # fmt: skip


def ratio_cells(one: Figures, own: Figures) -> tuple[str, ...]:
    """CPU, wall and memory of a peer over `live`'s, no memory where a run was too short to be sampled; the goals."""
    ratios = {
        "CPU": one.cpu / max(own.cpu, 1e-9),
        "wall": one.wall / max(own.wall, 1e-9),
        "memory": one.rss / own.rss if own.rss else 0.0,
    }
    cells = (f"{value:.1f}x" if value else "–" for value in ratios.values())
    return (*cells, "; ".join(goals_of(one, ratios)) or "–")


def goals_of(one: Figures, ratios: dict[str, float]) -> Iterator[str]:
    """Each goal of a peer's run, and whether it is reached; of one that failed none is. A wrong peer is named so."""
    for goal in GOALS:
        if (goal.name, goal.peer, goal.mode) == (one.name, one.engine, one.mode):
            outcome = "reached" if ratios[goal.figure] >= goal.least and not one.failure else "not reached"
            wrong = " (the peer is judged wrong)" if one.verdict.startswith("wrong") else ""
            yield f"{goal.figure} at least {goal.least:g}x: {outcome}{wrong}"
    if (one.name, one.engine) == ("select/big/5s/5s", "spark"):
        yield f"{SPARK_GOAL:,} triples/s: {'reached' if one.rate >= SPARK_GOAL else f'not reached ({one.rate:,.0f})'}"


PLACES = (
    ("decoding elements", ("decode_input", "_triples", "raw_decode", "'split' of 'str'", "_laid_out")),
    ("encoding answers", ("encode_answer", "iterencode", "encode_basestring", "c_make_encoder")),
)
"""Names of functions that belong to the wire, by part."""


def profiled(header: RunHeader, stream: Iterable[StreamElement], shown: int = 15) -> None:
    """Print the shares of own time by part, and the functions that take most."""
    lines = [encode_task(task_of(header)), *map(encode_element, stream), encode_advance(header.advanced_to)]
    reader: io.BufferedReader = io.BufferedReader(io.BytesIO(b"".join(lines)))
    del lines
    with cProfile.Profile() as profile:
        serve("live", reader, io.BytesIO())
    stats = pstats.Stats(profile)
    parts: Counter[str] = Counter()
    own: Counter[str] = Counter()
    for (file, line, name), (_, _, spent, *_) in stats.stats.items():  # type: ignore[attr-defined]
        part = next((part for part, names in PLACES if any(word in name for word in names)), "evaluating")
        parts[part] += spent
        own[f"{file.rpartition('streamgauge/')[2]}:{line} {name}"] += spent
    whole = sum(parts.values())
    for part, spent in parts.most_common():
        print(f"{part}: {spent / whole:.0%} of {whole:.1f} s (profiled)")
    for name, spent in own.most_common(shown):
        print(f"  {spent / whole:6.1%}  {name}")


if __name__ == "__main__":
    main()
