"""The suite `speed`: every case of cases.toml, in CPU seconds, and two states of the code beside each other.

python -m benchmarks.speed [CASE ...] [--repeat 3]
python -m benchmarks.speed --before OTHER/src [CASE ...] [--repeat 7] [--slower 5]

Alone: triples (of the broker publications and deletions) per second of the process's CPU time, the least CPU of all
repetitions. With ``--before``, each case runs in processes of its own that take turns between the package below that
folder and this one; medians of CPU are compared. Exit code 1 when a case is slower by more than ``--slower`` percent,
or does not reach its goal.
"""

import io
import json
import os
import subprocess
import sys
import tempfile
import time
import tomllib
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, Final

from benchmarks.measure import own_cost, parser
from benchmarks.results import ResultTable
from benchmarks.stations import RUNS, observations, window_query

HOME: Final = Path(__file__).parent
SOURCE: Final = HOME.parent / "src"


@dataclass(frozen=True)
class SpeedCase:
    """A case of the suite: see the head of cases.toml for units."""

    name: str
    kind: str
    engine: str
    query: str
    window: int = 5
    slide: int = 5
    stations: int = 0
    seconds: int = 0
    channels: int = 0
    publications: int = 0
    first: int = 1000
    goal: int = 0

    @property
    def size(self) -> int:
        """Triples, of the broker publications and deletions, that the case is about."""
        if self.kind == "reading" and not self.seconds:
            return 2 * self.stations
        return 2 * self.publications if self.kind == "broker" else 7 * self.stations * self.seconds


def cases(names: list[str]) -> list[SpeedCase]:
    """The cases of these names, all where there are none; SystemExit names those that there are."""
    cases_ = {name: SpeedCase(name, **load) for name, load in tomllib.loads((HOME / "cases.toml").read_text()).items()}
    if unknown := [name for name in names if name not in cases_]:
        raise SystemExit(f"there is no case {unknown[0]}: there is {', '.join(cases_)}")
    return [cases_[name] for name in names or cases_]


def cpu_of(call: Callable[[], object]) -> float:
    """CPU seconds of a call."""
    with own_cost() as spent:
        call()
    return spent.cpu


def _fed(case: SpeedCase) -> list[Any]:
    return [element for second in range(case.seconds) for element in observations(case.stations, second)]


def _asked(case: SpeedCase) -> tuple[Any, Any]:
    """Query and semantics of a case of windows."""
    semantics = RUNS[2][1] if case.slide == 0 else RUNS[0][1]
    return window_query(case.query, case.window * 1000, (case.slide or case.window) * 1000), semantics


def _answers(case: SpeedCase, query: Any, semantics: Any, fed: list[Any]) -> tuple[Any, ...]:
    answers: list[Any] = []
    session = import_module("streamgauge.engines").load(case.engine).start(query, semantics, answers.append)
    for element in fed:
        session.push(element)
    session.advance(_until(fed))
    return tuple(answers)


def _until(fed: list[Any]) -> int:
    return int(fed[-1].time) // 1000 * 1000


def _engine(case: SpeedCase, _: Path) -> Callable[[], object]:
    (query, semantics), fed = _asked(case), _fed(case)
    return lambda: _answers(case, query, semantics, fed)


def _pipe(case: SpeedCase, _: Path) -> Callable[[], object]:
    coded = import_module("streamgauge.formats.lines")
    (query, semantics), fed = _asked(case), _fed(case)
    lines = [coded.encode_element(element) for element in fed]
    return lambda: _answers(case, query, semantics, [coded.decode_input(line) for line in lines])


def _arrow(case: SpeedCase, _: Path) -> Callable[[], object]:
    """The same elements in batches of 1,000, the first of ``first``, decoded from Arrow as on the pipe."""
    coded = import_module("streamgauge.formats.batches")
    (query, semantics), fed, writer = _asked(case), _fed(case), coded.BatchWriter()
    cuts = [0, *range(case.first, len(fed), 1000), len(fed)]
    data = b"".join([writer.encode(fed[begin:end]) for begin, end in pairwise(cuts)]) + writer.end()
    until = _until(fed)

    def answered() -> tuple[Any, ...]:
        answers: list[Any] = []
        session = import_module("streamgauge.engines").load(case.engine).start(query, semantics, answers.append)
        reader = io.BufferedReader(io.BytesIO(data))
        while reader.peek(1):
            for together in coded.read_batches(reader):
                for batch in together:
                    (session.push_batch if hasattr(batch, "times") else session.push)(batch)
        session.advance(until)
        return tuple(answers)

    return answered


def _check(case: SpeedCase, folder: Path) -> Callable[[], object]:
    """Judging a run of the engine by the definition; its answers are made before."""
    judge, runs = import_module("streamgauge.oracle.judging.judge"), import_module("streamgauge.model.run")
    (query, semantics), fed = _asked(case), _fed(case)
    answers = _answers(case, query, semantics, fed)
    import_module("streamgauge.formats.stream").write(fed, folder / "stream.parquet")
    header = runs.RunHeader(case.engine, query, query.sparql, "sparql", semantics, _until(fed), 0)
    means = judge.Means(lambda: sys.exit("the definition needs no Spark"), evaluator="definition")
    return lambda: _right(judge.judge_run(runs.Run(header, answers, ()), folder / "stream.parquet", means))


def _right(verdict: Any) -> None:
    if verdict.judgement.value != "right":
        raise SystemExit(f"the run is {verdict.judgement.value}: {verdict.reason}")


def _broker(case: SpeedCase, _: Path) -> Callable[[], object]:
    """Facts of ``channels`` classes, published and deleted one by one; a channel joins the facts of one class."""
    core = import_module("streamgauge.servers.broker.broker")
    limits = import_module("streamgauge.servers.broker.limits").Limits()
    rules = import_module("streamgauge.reasoning.rules").Rules()
    begin = import_module("streamgauge.servers.broker.strategies").begin
    broker = core.Broker(begin("incremental", rules), lambda: 0, time.monotonic, None, limits)
    for number in range(case.channels):
        broker.create_channel(f"c{number}", f"SELECT * {{ ?x a <urn:C{number}> ; <urn:n> ?n FILTER(?n < 50) }}")
    kind = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
    integer = "<http://www.w3.org/2001/XMLSchema#integer>"
    facts = [
        (
            (f"<urn:x{at}>", kind, f"<urn:C{at % case.channels}>"),
            (f"<urn:x{at}>", "<urn:n>", f'"{at % 100}"^^{integer}'),
        )
        for at in range(case.publications)
    ]

    def publish() -> None:
        for fact in facts:
            broker.publish(fact)
        for fact in facts:
            broker.delete(fact)

    return publish


_AT: Final = "http://www.w3.org/ns/sosa/resultTime"
_DATE: Final = "http://www.w3.org/2001/XMLSchema#dateTime"
_RDF_HEAD: Final = (
    '<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:s="http://www.w3.org/ns/sosa/" '
    'xmlns:e="urn:e:">'
)
OBSERVATIONS: Final[dict[str, tuple[str, str, str]]] = {
    "csv": ("time,sensor,value\n", "{at},s{n},{n}.5\n", ""),
    "jsonld": (
        f'{{"@context": {{"@vocab": "urn:e:", "at": {{"@id": "{_AT}", "@type": "{_DATE}"}}}}, "@graph": [\n',
        '{{"@id": "urn:o{n}", "at": "{at}", "value": {n}.5}},\n',
        '{"@id": "urn:end"}]}',
    ),
    "nt": ("", f'<urn:o{{n}}> <{_AT}> "{{at}}"^^<{_DATE}> .\n<urn:o{{n}}> <urn:e:value> "{{n}}" .\n', ""),
    "rdf": (
        _RDF_HEAD,
        f'<r:Description r:about="urn:o{{n}}"><s:resultTime r:datatype="{_DATE}">{{at}}</s:resultTime>'
        "<e:value>{n}</e:value></r:Description>\n",
        "</r:RDF>",
    ),
    "ttl": ("", f'<urn:o{{n}}> <{_AT}> "{{at}}"^^<{_DATE}> ; <urn:e:value> {{n}} .\n', ""),
}
"""Files of observations by ending: what stands before them, one of them, what stands after."""


def _reading(case: SpeedCase, folder: Path) -> Callable[[], object]:
    """A file of the format ``engine`` read by the file door, with the options ``query`` behind its name."""
    streams, sources = (import_module(f"streamgauge.{name}") for name in ("formats.streams", "sources"))
    file = folder / f"s.{case.engine}"
    if case.engine in OBSERVATIONS:
        head, one, tail = OBSERVATIONS[case.engine]
        times = ((n, datetime.fromtimestamp(1_772_352_000 + n, UTC).strftime("%FT%TZ")) for n in range(case.stations))
        file.write_text(head + "".join(one.format(n=n, at=at) for n, at in times) + tail)
    else:
        streams.write_stream(_fed(case), file)
    reading = streams.Reading(stream="urn:s", note=lambda _: None)
    return lambda: sum(1 for _ in sources.open_source(f"{file}{case.query}", reading).items())


KINDS: Final[dict[str, Callable[[SpeedCase, Path], Callable[[], object]]]] = {
    "engine": _engine, "pipe": _pipe, "arrow": _arrow, "check": _check, "broker": _broker, "reading": _reading,
}  # fmt: skip
"""Kinds of cases by name: from a case and a folder of its own to the call that is measured."""


def least(case: SpeedCase, repeat: int) -> float:
    """The least CPU seconds of some repetitions in this process, after one that is not counted."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # names of before, which older states know
        call = KINDS[case.kind](case, Path(folder))
        return min([cpu_of(call) for _ in range(repeat + 1)][1:])


def beside(case: SpeedCase, source: Path) -> float:
    """The least CPU seconds of a case in a process of its own, with the package below a folder."""
    words = [sys.executable, "-W", "ignore", "-m", "benchmarks.speed", case.name, "--one"]
    environment = {**os.environ, "PYTHONPATH": f"{source.resolve()}{os.pathsep}{HOME.parent}"}
    done = subprocess.run(words, cwd=HOME.parent, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{case.name} with {source}: {done.stderr.strip()[-500:]}")
    return float(json.loads(done.stdout))


def alone(chosen: list[SpeedCase], repeat: int) -> bool:
    """Print every case; whether all goals are reached."""
    reached = True
    with ResultTable("speed", ("case", "kind", "CPU s", "a CPU second", "us each", "goal", "outcome")) as table:
        for case in chosen:
            spent = least(case, repeat)
            rate = case.size / spent
            reached = reached and rate >= case.goal
            outcome = "" if not case.goal else "reached" if rate >= case.goal else "not reached"
            goal = f"{case.goal:,}" if case.goal else ""
            per_triple = f"{1e6 * spent / case.size:.2f}"
            table.add(case.name, case.kind, f"{spent:.3f}", f"{rate:,.0f}", per_triple, goal, outcome)
    return reached


def paired(chosen: list[SpeedCase], before: Path, repeat: int, slower: float) -> bool:
    """Print every case in both states, which take turns; whether none is slower by more than so many percent."""
    kept = True
    with ResultTable("speed_paired", ("case", "before, CPU s", "now, CPU s", "now / before", "outcome")) as table:
        for case in chosen:
            turns = [(beside(case, before), beside(case, SOURCE)) for _ in range(repeat)]
            old, new = (median(side) for side in zip(*turns, strict=True))
            right = new <= old * (1 + slower / 100)
            kept = kept and right
            table.add(case.name, f"{old:.3f}", f"{new:.3f}", f"{new / old:.2f}", "" if right else "slower")
    return kept


def main() -> int:
    command = parser(__doc__, repeat=int, before=Path, slower=5.0, one=False)
    command.add_argument("case", nargs="*")
    arguments = command.parse_args()
    chosen = cases(arguments.case)
    if arguments.one:
        print(json.dumps(least(chosen[0], 2)))
        return 0
    if arguments.before is None:
        return 0 if alone(chosen, arguments.repeat or 3) else 1
    return 0 if paired(chosen, arguments.before, arguments.repeat or 7, arguments.slower) else 1


if __name__ == "__main__":
    sys.exit(main())
