"""Shapes of queries: the cost of a triple for every shape of shapes.toml, and how the cost grows with the input.

python -m benchmarks.shapes [SHAPE ...] [--ways close sliding change] [--values many] [--subjects 500]
    [--jobs 1]

A few shapes are answered by `live` in a process, each with ``--seconds`` of CPU for a way, at ``--subjects`` subjects
in 10 s of event time and at 16 times as many, in turn with the plain select; of several rounds the least counts, since
load beside adds to CPU seconds too. Printed are CPU us a triple at the larger size, how many times the plain select's
that is, and the growth: the exponent with which CPU grows in input and output together, where 1 is proportional. Where
the output is not of the input's size (``product``) the larger size is 4 times the smaller, and both figures are told a
triple or row. ``--values``: how many different numbers subjects have. ``--judge`` has the answers judged by the
definition instead, at a tenth of the subjects or 24.
Exit code 1 for a shape that costs over 20 times the plain select, grows with over 1.1, is refused, or is judged
otherwise than right.
"""

import gc
import json
import resource
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import cache
from itertools import chain, islice
from math import log
from pathlib import Path
from typing import Any, Final

from benchmarks.measure import OneOf, own_cpu, parser
from benchmarks.results import ResultTable
from benchmarks.stations import RUNS
from streamgauge.engines import live
from streamgauge.model.element import StreamElement
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.semantics import Semantics
from streamgauge.model.terms import Triple
from streamgauge.query import parse_sparql

HOME: Final = Path(__file__).parent
STREAM: Final = "urn:shape:stream"
PREFIX: Final = "urn:shape:"
WAYS: Final = dict(zip(("close", "sliding", "change"), RUNS, strict=True))
"""Ways to report by name: tumbling, sliding, content change."""

WINDOWS: Final[dict[str, Callable[[Window], tuple[StreamWindow, ...]]]] = {
    "time": lambda window: (StreamWindow(STREAM, window),),
    "count": lambda window: (StreamWindow(STREAM, Window(window.size // 50, window.slide // 50, "count")),),
    "named": lambda window: (
        StreamWindow(STREAM, window, f"{PREFIX}long"),
        StreamWindow(STREAM, Window(window.size // 5, min(window.slide, window.size // 5)), f"{PREFIX}short"),
    ),
}
"""The windows of a shape, made of the window (ms) of the way to report: a triple of a count-based one is 50 ms."""

VALUES: Final[dict[str, Callable[[int], tuple[str, str, str]]]] = {
    "few": lambda n: (_number(n * 7 % 4 * 33, "integer"), _number(n * 3 % 4, "decimal"), _number(n % 3, "integer")),
    "many": lambda n: (
        _number(n * 7 % 100, "integer"),
        _number(n * 3 % 100 / 10, "decimal"),
        _number(n * 11 % 50, "integer"),
    ),
    "distinct": lambda n: (
        _number(n * 7919 % 100003 / 1000, "decimal"),
        _number(n * 6007 % 100003 / 10000, "decimal"),
        _number(n * 4001 % 100003 / 2000, "decimal"),
    ),
}
"""``:value``, ``:size`` and ``:extra`` of a subject: of 4 or 3 different numbers, of 100 or 50, all different."""

LARGER: Final = 16
LARGER_PRODUCT: Final = 4
"""How many times as many subjects there are at the larger size; a product of two has 16 times the output."""

DURATION_MS: Final = 10_000
FLOORS: Final = 1_000_000
ROOM: Final = 4
"""Subjects of a room, unless all are in one."""

JUDGED: Final = (*range(8), *range(28, 32), *range(40, 46), 57, 58, 76, 77, 100, 101)
"""Subjects among which every shape has a solution, so that no judgement is one over nothing."""

CHAIN: Final = 100
REPEATED_S: Final = 0.4
"""CPU s that were measured of a shape and way after which there is no other round."""

ROUNDS: Final = 3
"""How often a shape is measured at most."""

TOGETHER: Final = 8
"""How many shapes a process measures, one after the other."""

STARTED_S: Final = 1.0
"""CPU s of starts after which there is no other round: a million static triples are taken in each time."""

TIMES: Final = 20
GROWTH: Final = 1.1
"""The goals: CPU a triple beside the plain select's, and the growth."""


@dataclass(frozen=True)
class QueryShape:
    """A shape: see the head of shapes.toml."""

    name: str
    where: str
    select: str = "*"
    tail: str = ""
    form: str = ""
    data: str = "uniform"
    static: bool = False
    product: bool = False
    windows: str = "time"
    values: str = "many"

    @property
    def title(self) -> str:
        """Its name, with the kind of its values unless these are the usual ones."""
        return self.name if self.values == "many" else f"{self.name}, {self.values} values"

    @property
    def text(self) -> str:
        """The query as SPARQL."""
        head = self.form or f"SELECT {self.select}"
        where = "" if head.startswith("ASK") else "WHERE "
        return f"PREFIX : <{PREFIX}> {head} {where}{{ {self.where} }} {self.tail}"


def shapes(names: list[str]) -> list[QueryShape]:
    """The shapes of these names, all where there are none; SystemExit names those that there are."""
    shapes_ = {
        name: QueryShape(name, **load) for name, load in tomllib.loads((HOME / "shapes.toml").read_text()).items()
    }
    if unknown := [name for name in names if name not in shapes_]:
        raise SystemExit(f"there is no shape {unknown[0]}: there is {', '.join(shapes_)}")
    return [shapes_[name] for name in names or shapes_]


def subjects(shape: QueryShape, numbers: Sequence[int]) -> Iterator[StreamElement]:
    """The stream: an element for the subject of each number, at equal distances, subjects in pairs."""
    for place, number in enumerate(numbers):
        room = 0 if shape.data == "hub" else number // ROOM
        other = number - number % CHAIN + (number + 1) % CHAIN if shape.data == "chain" else number ^ 1
        time = place * DURATION_MS // len(numbers)
        yield StreamElement(STREAM, time, place, tuple(_described(number, room, other, shape.values)))


def _described(number: int, room: int, other: int, values: str) -> Iterator[Triple]:
    me = f"<{PREFIX}s{number}>"
    value, size, extra = VALUES[values](number)
    yield me, f"<{PREFIX}value>", value
    yield me, f"<{PREFIX}size>", size
    yield me, f"<{PREFIX}name>", f'"subject {number}"'
    yield me, f"<{PREFIX}in>", f"<{PREFIX}r{room}>"
    yield me, f"<{PREFIX}to>", f"<{PREFIX}s{other}>"
    if number % 2 == 0:
        yield me, f"<{PREFIX}extra>", extra
    if number % 4 == 0:
        yield me, f"<{PREFIX}note>", f'"note {number}"' if number % 8 else f'"subject {other}"'


def _number(value: float, kind: str) -> str:
    return f'"{value}"^^<http://www.w3.org/2001/XMLSchema#{kind}>'


def question(shape: QueryShape, way: str, floors: int) -> tuple[ContinuousQuery, Semantics]:
    """The query beside its static data (``floors`` rooms with a floor), and the semantics of the way to report."""
    _, semantics, window = WAYS[way]
    query = ContinuousQuery(parse_sparql(shape.text), WINDOWS[shape.windows](window), sparql=shape.text)
    return (query.with_static(_rooms(floors)) if shape.static else query), semantics


@cache
def _rooms(floors: int) -> tuple[Triple, ...]:
    """The static data: rooms with a floor each."""
    return tuple((f"<{PREFIX}r{n}>", f"<{PREFIX}floor>", _number(n % 10, "integer")) for n in range(floors))


@dataclass(frozen=True)
class ShapeCost:
    """The cost of a shape at one size: triples that came, rows that were sent, CPU s of the start and of the rest."""

    triples: int
    rows: int
    start: float
    cpu: float


def cost(shape: QueryShape, way: str, count: int, floors: int = FLOORS) -> ShapeCost:
    """Answer the stream of ``count`` subjects in this process; SystemExit where the engine refuses.

    Objects of before are frozen out of the collector's reach: looking through them takes longer than a round.
    """
    query, semantics = question(shape, way, floors)
    if refusal := live.refuse(query, semantics):
        raise SystemExit(refusal)
    fed, rows = list(subjects(shape, range(count))), [0]

    def take(answer: Any) -> None:
        rows[0] += len(answer.added) + len(answer.removed)

    gc.collect()
    gc.freeze()
    before = own_cpu()
    session = live.start(query, semantics, take)
    started = own_cpu()
    for element in fed:
        session.push(element)
    session.advance(DURATION_MS)
    done = own_cpu()
    session.close()
    return ShapeCost(sum(len(element.added) for element in fed), rows[0], started - before, done - started)


def growth(small: ShapeCost, large: ShapeCost) -> float:
    """The exponent of CPU in input and output together; 0 where the smaller took no time that can be measured."""
    if not small.cpu:
        return 0.0
    return log(large.cpu / small.cpu) / log((large.triples + large.rows) / (small.triples + small.rows))


@dataclass(frozen=True)
class ShapeFigures:
    """The costs of a shape under a way to report: at one size, at the larger one, and the plain select's at that."""

    small: ShapeCost
    large: ShapeCost
    plain: ShapeCost

    @property
    def growth(self) -> float:
        """See ``growth``."""
        return growth(self.small, self.large)

    def each(self, shape: QueryShape) -> float:
        """CPU us a triple at the larger size; a triple or row of a product."""
        return _each(self.large, shape.product)

    def times(self, shape: QueryShape) -> float:
        """How many times the plain select's cost that is."""
        return self.each(shape) / _each(self.plain, shape.product)

    def faults(self, shape: QueryShape) -> list[str]:
        """The goals that are not reached."""
        return ["over 20 times"] * (self.times(shape) > TIMES) + ["grows"] * (self.growth > GROWTH)


def _each(cost: ShapeCost, product: bool) -> float:
    return 1e6 * cost.cpu / (cost.triples + cost.rows * product)


def figures(shape: QueryShape, way: str, count: int) -> ShapeFigures:
    """The least costs of several rounds in this process; SystemExit where the engine refuses."""
    larger = count * (LARGER_PRODUCT if shape.product else LARGER)
    pairs = ((shape, count), (shape, larger), (replace(shapes(["plain"])[0], values=shape.values), larger))
    repetitions: list[list[ShapeCost]] = []
    spent = started = 0.0
    while spent < REPEATED_S and started < STARTED_S and len(repetitions) < ROUNDS:
        repetitions.append([cost(case, way, size) for case, size in pairs])
        spent += sum(cost.cpu for cost in repetitions[-1])
        started += sum(cost.start for cost in repetitions[-1])
    return ShapeFigures(*(min(costs, key=lambda cost: cost.cpu) for costs in zip(*repetitions, strict=True)))


def apart(cases: list[tuple[QueryShape, str]], count: int, seconds: int) -> Iterator[ShapeFigures | str]:
    """The figures of shapes and ways, in a process of their own; a sentence where one ends otherwise."""
    while cases:
        words = [sys.executable, "-m", "benchmarks.shapes", "--alone", "--subjects", str(count)]
        words += ["--seconds", str(seconds), *(f"{shape.name}/{way}/{shape.values}" for shape, way in cases)]
        done = subprocess.run(words, cwd=HOME.parent, capture_output=True, text=True, check=False)
        lines = done.stdout.splitlines()
        for line in lines:
            yield ShapeFigures(**{name: ShapeCost(**load) for name, load in json.loads(line).items()})
        if not done.returncode:
            return
        yield f"over {seconds} s" if done.returncode < 0 else done.stderr.strip().splitlines()[-1]
        cases = cases[len(lines) + 1 :]


def judged(shape: QueryShape, way: str, numbers: Sequence[int] = JUDGED) -> str:
    """The judgement of the answers by the definition, with the reason where it is not right or nothing was answered."""
    from streamgauge.formats.stream import write
    from streamgauge.model.answer import Answer
    from streamgauge.model.run import Run, RunHeader
    from streamgauge.oracle.judging.judge import Means, judge_run

    query, semantics = question(shape, way, max(numbers) // ROOM + 1)
    if refusal := live.refuse(query, semantics):
        return refusal
    fed, answers = list(subjects(shape, numbers)), list[Answer]()
    session = live.start(query, semantics, answers.append)
    for element in fed:
        session.push(element)
    session.advance(DURATION_MS)
    session.close()
    with tempfile.TemporaryDirectory() as folder:
        stream = Path(folder) / "stream.parquet"
        write(fed, stream)
        header = RunHeader("live", query, query.sparql, "sparql", semantics, DURATION_MS, 0)
        means = Means(lambda: sys.exit("the definition needs no Spark"), evaluator="definition")
        verdict = judge_run(Run(header, tuple(answers), ()), stream, means)
    if not any(answer.added for answer in answers):
        return "nothing was answered: the shape has no solution among these subjects"
    return verdict.judgement.value if verdict.judgement.value == "right" else verdict.reason or verdict.judgement.value


def measure(chosen: list[QueryShape], ways: list[str], count: int, seconds: int, jobs: int) -> bool:
    """Print the table, measured by ``jobs`` processes at once; whether every shape is within the goals.

    Of a result that is kept only the rows of these shapes are replaced.
    """
    kept = True
    columns = ("shape", "start, CPU s", *(f"{way}: CPU us (times plain, growth)" for way in ways), "outcome")

    def together(some: Sequence[QueryShape]) -> list[ShapeFigures | str]:
        return list(apart([(shape, way) for shape in some for way in ways], count, seconds))

    part = {shape.name for shape in chosen if shape.values == "many"} < {shape.name for shape in shapes([])}
    with ResultTable("shapes", columns, part, summary) as table, ThreadPoolExecutor(jobs) as pool:
        parts = [chosen[at : at + TOGETHER] for at in range(0, len(chosen), TOGETHER)]
        costs = chain.from_iterable(pool.map(together, parts))
        for shape in chosen:
            outcomes = dict(zip(ways, islice(costs, len(ways)), strict=True))
            faults = [f"{way}: {fault}" for way, outcome in outcomes.items() for fault in _faults(shape, outcome)]
            kept = kept and not faults
            starts = [outcome.large.start for outcome in outcomes.values() if isinstance(outcome, ShapeFigures)]
            cells = (_cell(shape, outcome) for outcome in outcomes.values())
            table.add(shape.title, f"{max(starts, default=0):.2f}", *cells, "; ".join(faults))
    return kept


def summary(rows: Sequence[Sequence[str]]) -> tuple[str, bool]:
    """How many shapes of the table are within the goals, and whether all are."""
    outcomes = [row[-1] for row in rows]
    within = sum("over" not in outcome for outcome in outcomes)
    grown = sum("grows" not in outcome for outcome in outcomes)
    message = f"{within} of {len(outcomes)} within {TIMES} times, {grown} grow with at most {GROWTH}"
    return message, not any(outcomes)


def _faults(shape: QueryShape, outcome: ShapeFigures | str) -> list[str]:
    return [outcome] if isinstance(outcome, str) else outcome.faults(shape)


def _cell(shape: QueryShape, outcome: ShapeFigures | str) -> str:
    if isinstance(outcome, str):
        return ""
    return f"{outcome.each(shape):.2f} ({outcome.times(shape):.1f}, {outcome.growth:.2f})"


def _alone(cases: list[str], count: int, seconds: int) -> None:
    """Print the figures of each SHAPE/WAY/VALUES as a line of JSON, each within so many CPU seconds."""
    for name, way, values in (case.split("/") for case in cases):
        limit = int(own_cpu()) + seconds
        resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))
        print(json.dumps(asdict(figures(replace(shapes([name])[0], values=values), way, count))), flush=True)


def main() -> int:
    command = parser(
        __doc__,
        ways=OneOf(WAYS),
        values=OneOf(VALUES, ("many",)),
        subjects=500,
        seconds=60,
        jobs=1,
        alone=False,
        judge=False,
    )
    command.add_argument("shape", nargs="*")
    arguments = command.parse_args()
    if arguments.alone:
        _alone(arguments.shape, arguments.subjects, arguments.seconds)
        return 0
    chosen = [replace(shape, values=values) for shape in shapes(arguments.shape) for values in arguments.values]
    if arguments.judge:
        more = (*JUDGED, *range(JUDGED[-1] + 1, arguments.subjects // 10))
        verdicts = {f"{shape.title}, {way}": judged(shape, way, more) for shape in chosen for way in arguments.ways}
        for name, outcome in verdicts.items():
            print(f"{name}: {outcome}", flush=True)
        return 0 if set(verdicts.values()) == {"right"} else 1
    return 0 if measure(chosen, arguments.ways, arguments.subjects, arguments.seconds, arguments.jobs) else 1


if __name__ == "__main__":
    sys.exit(main())
