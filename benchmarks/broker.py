"""CPU of the broker in process: publications by SEP-BM configuration, and a thousand channels of different structure.

python -m benchmarks.broker FOLDER... [--system broker_inprocess] [--option strategy=incremental] [--first N]
python -m benchmarks.broker [--channels 1000] [--publications 300] [--seed 0] [--open 0.1] [--profile create|publish]

With FOLDERs that `streamgauge sepbm generate` writes (of LUBM(1), (5), (10) for growth with the data, with
`--channels 10000` for many channels), each in a process of its own: the base load, the channels with a subscriber each,
then the sequence's publications are published one by one, deleted in the same order, and published again. A system is
an adapter of `streamgauge.suites.sepbm.adapters`, in process; option `journal=FOLDER` makes it durable. `wall` is from
the call to its return, when all subscribers have been told; `cpu` is the process's own time for it; `row` is from the
call to the subscriber, an average over rows, ms. Strategies that put evaluations off (stringrs,
graphss) send some rows at the end only: `streamgauge sepbm` measures those.

Without: LUBM(1) with its ontology's rules, no journal. Publications are single facts, and descriptions of resources
(all that the data say about one), drawn from all and held out of the base; each is published, then each is deleted. A
drawn query is passed over where its answer has more than 10,000 rows. ``channels told`` is how many channels one
publication changes. ``--profile`` prints where it goes. Each query is drawn along facts that are there, so its pattern
had a solution when it was drawn. Two queries have the same structure where they differ in the names of variables and in
terms drawn from the facts alone; classes, properties and operators are the structure.
"""

import cProfile
import json
import pstats
import re
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from random import Random
from statistics import fmean, median
from typing import Final, NamedTuple

from benchmarks.measure import OneOf, parser, resident, times_text
from benchmarks.results import ResultTable
from streamgauge import workloads
from streamgauge.formats.streams import read_triples
from streamgauge.incremental.budget import gc_frozen
from streamgauge.model.terms import RDF_TYPE, Term, Triple
from streamgauge.oracle.judging.metrics import percentile
from streamgauge.servers.broker.broker import Broker
from streamgauge.servers.broker.contract import Publication
from streamgauge.servers.broker.limits import LimitError, Limits
from streamgauge.servers.broker.strategies import begin
from streamgauge.suites.sepbm import Configuration, ReceivedNotification, SepbmSystem, read
from streamgauge.suites.sepbm.adapters import start
from streamgauge.suites.sepbm.generator import rules_of, university

Figures = dict[str, int | float | str]


@dataclass
class Pass:
    """Seconds of each publication, wall and CPU, and of each row's way to its subscriber."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    row: list[float] = field(default_factory=list)
    told: int = 0

    def figures(self, label: str) -> Figures:
        """Mean, median and 99th percentile, ms: wall and CPU of a publication, delay of a row."""
        figures_: Figures = {f"{label} per s": len(self.wall) / sum(self.wall)}
        for kind, times in (("wall", self.wall), ("cpu", self.cpu), ("row", self.row)):
            if times:
                statistics = {"mean": fmean(times), "median": median(times), "p99": percentile(times, 99) or 0.0}
                figures_ |= {f"{label} {kind} {name}": 1000 * value for name, value in statistics.items()}
        return figures_ | {f"{label} channels told": self.told / len(self.wall)}


def measured(system: SepbmSystem, publications: Iterable[Publication], ear: list[ReceivedNotification]) -> Pass:
    """Feed publications one after the other."""
    measured_pass = Pass()
    for publication in publications:
        spent, called, clock = time.process_time(), time.monotonic_ns(), time.perf_counter()
        system.feed(publication)
        system.settle()
        measured_pass.wall.append(time.perf_counter() - clock)
        measured_pass.cpu.append(time.process_time() - spent)
        for notification in ear:
            measured_pass.row += [(notification.received - called) / 1e9] * (
                len(notification.added) + len(notification.removed)
            )
        measured_pass.told += len(ear)
        ear.clear()
    return measured_pass


def run(configuration: Configuration, name: str, options: Mapping[str, str], first: int | None) -> Figures:
    """All passes on one configuration."""
    graphs = [publication.added for publication in islice(configuration.sequence(), first) if publication.added]
    system, ear = start(name, options), list[ReceivedNotification]()
    began = time.process_time()
    with gc_frozen():
        system.start(configuration)
        loaded = time.process_time()
        for channel in configuration.channels:
            system.subscribe(channel, ear.append)
        started = time.process_time()
    figures: Figures = {
        "configuration": configuration.folder.name,
        "closure": str(configuration.about.made.get("closure", "?")),
        "channels": len(configuration.channels),
        "publications": len(graphs),
        "load, cpu s": loaded - began,
        "channels, cpu s": started - loaded,
    }
    published = [Publication(number, graph, ()) for number, graph in enumerate(graphs, 1)]
    deleted = [Publication(number, (), graph) for number, graph in enumerate(graphs, 1)]
    for label, publications in (("publish", published), ("delete", deleted), ("again", published)):
        figures |= measured(system, publications, ear).figures(label)
    figures["MiB"] = resident() * 1e6 / 2**20
    system.close()
    return figures


OPEN: Final = 0.1
"""The share of channels without a term drawn from the facts."""

_DRAWN: Final = re.compile(r'<http://www\.(?:Dep|Uni)[^>]*>|"[^"]*"')
_VARIABLE: Final = re.compile(r"\?\w+")


class DrawnQuery(NamedTuple):
    """A query, and its structure."""

    text: str
    structure: str


class FactIndex:
    """Triples by subject and by object."""

    def __init__(self, triples: Sequence[Triple]) -> None:
        self.of: dict[Term, list[Triple]] = defaultdict(list)
        self.to: dict[Term, list[Triple]] = defaultdict(list)
        for triple in triples:
            self.of[triple[0]].append(triple)
            self.to[triple[2]].append(triple)
        self.subjects = sorted(self.of)


class Walk:
    """A basic graph pattern along facts: variables by term, some terms stay."""

    def __init__(self, facts: FactIndex, random: Random, closed: bool) -> None:
        self._facts, self._random, self._closed = facts, random, closed
        self._names: dict[Term, str] = {}
        self._stays: set[Term] = set()
        self.used: set[Triple] = set()

    def node(self, term: Term) -> str:
        """The variable or the term itself in the pattern."""
        return term if term in self._stays else "?" + self._names.setdefault(term, f"v{len(self._names)}")

    @property
    def variables(self) -> list[str]:
        """The variables of the query, in order of first use."""
        return [f"?{name}" for name in self._names.values()]

    def line(self, triple: Triple) -> str:
        """A triple pattern; a class and a property stay."""
        self.used.add(triple)
        subject, predicate, end = triple
        return f"{self.node(subject)} {predicate} {end if predicate == RDF_TYPE else self.node(end)} ."

    def star(self, centre: Term, size: int) -> list[str]:
        """Several facts about one term; the object of one stays where the pattern is closed."""
        own_facts = [fact for fact in self._facts.of[centre] if fact not in self.used]
        chosen = self._random.sample(own_facts, min(size, len(own_facts)))
        ends = [fact[2] for fact in chosen if fact[1] != RDF_TYPE and fact[2] not in self._names]
        if self._closed and ends:
            self._stays.add(self._random.choice(ends))
        self.node(centre)
        return [self.line(fact) for fact in chosen]

    def chain(self, start: Term, length: int) -> list[str]:
        """Facts one after the other in any direction, not through a literal; where it is closed the last term stays."""
        here, path, seen = start, list[Triple](), {start}
        for _ in range(length):
            onward = [fact for fact in self._facts.of[here] if fact[1] != RDF_TYPE and fact[2] not in seen]
            back = [fact for fact in self._facts.to[here] if fact[0] not in seen][:200]
            if not onward + back or here[0] == '"':
                break
            chosen = self._random.choice(onward if onward and (not back or self._random.random() < 0.7) else back)
            path.append(chosen)
            here = chosen[2] if chosen[0] == here else chosen[0]
            seen.add(here)
        if self._closed and here != start:
            self._stays.add(here)
        self.node(start)
        return [self.line(fact) for fact in path]


class Grammar:
    """Draws queries; the kinds of structure have equal shares."""

    def __init__(self, triples: Sequence[Triple], random: Random, share_open: float = OPEN) -> None:
        self._facts, self._random, self._open = FactIndex(triples), random, share_open
        self._kinds: tuple[Callable[[Walk, Term], str], ...] = (
            self._star,
            self._chain,
            self._snowflake,
            self._filtered,
            self._optional,
            self._union,
            self._negated,
            self._counted,
        )

    def queries(self) -> Iterator[DrawnQuery]:
        """Queries of structures that are all different, without end."""
        seen: set[str] = set()
        while True:
            drawn = self._drawn()
            if drawn is not None and drawn.structure not in seen:
                seen.add(drawn.structure)
                yield drawn

    def _drawn(self) -> DrawnQuery | None:
        walk = Walk(self._facts, self._random, self._random.random() >= self._open)
        text = self._random.choice(self._kinds)(walk, self._random.choice(self._facts.subjects))
        if "." not in text or not walk.variables:
            return None
        return DrawnQuery(text, structure(text))

    def _select(self, walk: Walk, group: str) -> str:
        """All variables, or those of one and any others."""
        names = walk.variables
        wanted = names if self._random.random() < 0.6 else names[: self._random.randint(1, len(names))]
        return f"SELECT {' '.join(wanted)} {{ {group} }}"

    def _star(self, walk: Walk, start: Term) -> str:
        lines = walk.star(start, self._random.randint(2, 4))
        return self._select(walk, " ".join(lines))

    def _chain(self, walk: Walk, start: Term) -> str:
        lines = walk.chain(start, self._random.randint(2, 4))
        return self._select(walk, " ".join(lines))

    def _snowflake(self, walk: Walk, start: Term) -> str:
        lines = walk.chain(start, self._random.randint(1, 2)) + walk.star(start, self._random.randint(1, 3))
        return self._select(walk, " ".join(lines))

    def _filtered(self, walk: Walk, start: Term) -> str:
        lines = walk.star(start, self._random.randint(2, 4))
        name = self._random.choice(walk.variables)
        word = self._random.choice(("a", "1", "Course", "Student", "Prof", "Department"))
        test = self._random.choice(
            (f'CONTAINS(STR({name}), "{word}")', f'STRLEN(STR({name})) > {self._random.randint(5, 60)}',
             f'!STRSTARTS(STR({name}), "{word}")', f'{name} != "{word}"')
        )  # fmt: skip
        return self._select(walk, f"{' '.join(lines)} FILTER({test})")

    def _optional(self, walk: Walk, start: Term) -> str:
        lines = walk.star(start, self._random.randint(1, 3))
        more = walk.chain(start, 1) if self._random.random() < 0.5 else walk.star(start, self._random.randint(1, 2))
        return self._select(walk, f"{' '.join(lines)} OPTIONAL {{ {' '.join(more)} }}")

    def _union(self, walk: Walk, start: Term) -> str:
        one = walk.star(start, self._random.randint(1, 3))
        two = walk.chain(start, self._random.randint(1, 2))
        return self._select(walk, f"{{ {' '.join(one)} }} UNION {{ {' '.join(two)} }}")

    def _negated(self, walk: Walk, start: Term) -> str:
        lines = walk.star(start, self._random.randint(1, 3))
        names = walk.variables
        other = self._facts.of[self._random.choice(self._facts.subjects)]
        _, predicate, end = self._random.choice(other)
        far = end if predicate == RDF_TYPE else "?other"
        what = self._random.choice(("MINUS", "FILTER NOT EXISTS"))
        group = f"{' '.join(lines)} {what} {{ {names[0]} {predicate} {far} }}"
        return f"SELECT {' '.join(names)} {{ {group} }}"

    def _counted(self, walk: Walk, start: Term) -> str:
        lines = walk.star(start, self._random.randint(1, 3)) + walk.chain(start, self._random.randint(0, 2))
        names = walk.variables
        key, counted = names[-1], names[0]
        operator = self._random.choice(("COUNT", "COUNT(DISTINCT", "MIN", "MAX"))
        call = f"{operator} {counted})" if "(" in operator else f"{operator}({counted})"
        if key == counted:
            return f"SELECT ({call} AS ?n) {{ {' '.join(lines)} }}"
        return f"SELECT {key} ({call} AS ?n) {{ {' '.join(lines)} }} GROUP BY {key}"


def structure(text: str) -> str:
    """A query's text with its variables numbered, and ``_`` for each term drawn from the facts."""
    known: dict[str, str] = {}
    bare = _DRAWN.sub("_", text)
    return _VARIABLE.sub(lambda match: known.setdefault(match[0], f"?{len(known)}"), bare)


_LIMITS = Limits(lag=1_000_000, kept=1, waiting=100_000, rows=10_000, effort=500_000)


CallTimes = tuple[list[float], list[float]]
"""CPU and wall ms of calls."""


def timed(calls: Iterable[Callable[[], object]]) -> CallTimes:
    """CPU and wall ms of each call."""
    cpu, wall = list[float](), list[float]()
    for call in calls:
        spent, clock = time.process_time_ns(), time.perf_counter_ns()
        call()
        cpu.append((time.process_time_ns() - spent) / 1e6)
        wall.append((time.perf_counter_ns() - clock) / 1e6)
    return cpu, wall


def cells(times: CallTimes) -> Iterator[str]:
    """Mean, median, 99th percentile and maximum, of CPU and of the wall clock."""
    return (f"mean {fmean(time_):.3f} {times_text(time_, '.3f')}" for time_ in times)


def created(broker: Broker, queries: Iterator[DrawnQuery], number: int) -> tuple[CallTimes, int]:
    """A channel a query, until there are so many; the times of those, and how many queries were passed over."""
    cpu, wall, refused = list[float](), list[float](), 0
    while len(cpu) < number:
        name, text = f"c{len(cpu)}", next(queries).text
        try:
            times = timed([partial(broker.create_channel, name, text)])
        except LimitError:
            refused += 1
            continue
        cpu += times[0]
        wall += times[1]
    return (cpu, wall), refused


def world(publications: int, random: Random) -> tuple[list[Triple], list[tuple[Triple, ...]], list[Triple]]:
    """All facts, the descriptions to publish, and the ontology."""
    ontology = list(read_triples(workloads.load("university").ONTOLOGY))  # type: ignore[attr-defined]
    facts = list(university(None, ontology, 1, 0, "no").facts)
    described: dict[Term, list[Triple]] = defaultdict(list)
    for triple in facts:
        described[triple[0]].append(triple)
    chosen = random.sample(sorted(described), publications)
    return facts, [tuple(described[resource]) for resource in chosen], ontology


def configurations(folders: Sequence[Path], words: Sequence[str]) -> None:
    """Each folder in a process of its own, a column each."""
    commands = [[sys.executable, "-m", "benchmarks.broker", str(folder), *words, "--here"] for folder in folders]
    results: list[Figures] = [json.loads(subprocess.check_output(command)) for command in commands]
    with ResultTable("broker", ("", *(str(result["configuration"]) for result in results))) as table:
        for key in results[0]:
            table.add(key, *(_shown(result.get(key, "")) for result in results))


def _shown(value: float | str) -> str:
    return f"{value:,.3f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else value


def channels(number: int, publications: int, random: Random, share_open: float, profiled: str | None) -> None:
    facts, graphs, ontology = world(publications, random)
    out = {triple for graph in graphs for triple in graph}
    broker = Broker(begin("incremental", rules_of(ontology)), lambda: 0, time.monotonic, None, _LIMITS)
    profile = cProfile.Profile()
    with gc_frozen():
        broker.load(triple for triple in facts if triple not in out)
        if profiled == "create":
            profile.enable()
        created_channels, refused = created(broker, Grammar(facts, random, share_open).queries(), number)
        profile.disable()
    print(f"queries passed over: {refused}")
    if profiled == "publish":
        profile.enable()
    with ResultTable("broker_channels", ("", "CPU ms", "wall ms", "channels told")) as table:
        table.add("create", *cells(created_channels), "")
        for kind, changes in (("facts", [(random.choice(graph),) for graph in graphs]), ("descriptions", graphs)):
            for label, operation in (("publish", broker.publish), ("delete", broker.delete)):
                before = sum(channel.number for channel in broker.channels())
                times = timed(partial(operation, graph) for graph in changes)
                notified = sum(channel.number for channel in broker.channels()) - before
                table.add(f"{label} {kind}", *cells(times), f"{notified / len(changes):.1f}")
    profile.disable()
    if profiled:
        pstats.Stats(profile).sort_stats("tottime").print_stats(35)
    broker.close()


def main() -> None:
    command = parser(
        __doc__, system="broker_inprocess", first=int, here=False, channels=1000, publications=300, seed=0, open=OPEN,
        profile=OneOf(("", "create", "publish"), ""),
    )  # fmt: skip
    command.add_argument("folders", nargs="*", type=Path)
    command.add_argument("--option", action="append", default=[], help="NAME=VALUE")
    arguments = command.parse_args()
    if arguments.here:
        options = dict(option.split("=", 1) for option in arguments.option)
        print(json.dumps(run(read(arguments.folders[0]), arguments.system, options, arguments.first)))
    elif arguments.folders:
        configurations(arguments.folders, [word for word in sys.argv[1:] if Path(word) not in arguments.folders])
    else:
        channels(arguments.channels, arguments.publications, Random(arguments.seed), arguments.open, arguments.profile)


if __name__ == "__main__":
    main()
