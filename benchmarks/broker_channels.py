"""A thousand channels of different structure at LUBM(1): what creating one costs, and what a publication does.

python -m benchmarks.broker_channels [--channels 1000] [--publications 300] [--seed 0] [--open 0.1] [--profile PART]
LUBM(1) with its ontology's rules, in process, without a journal. Publications are single facts, and descriptions of
resources (all that the data say about one), drawn from all and held out of the base; each is published, then each is
deleted. A drawn query is passed over where its answer has more than 10,000 rows. ``channels told`` is how many channels
one publication changes. Times are CPU of the process, in ms; those of the wall clock stand beside them.
``--profile create`` or ``publish`` prints where it goes.
"""

import argparse
import cProfile
import pstats
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from random import Random
from statistics import fmean
from typing import TypeAlias

from benchmarks.channel_grammar import OPEN, Drawn, Grammar
from streamgauge import workloads
from streamgauge.formats.streams import read_triples
from streamgauge.incremental.lasting import lasting
from streamgauge.model.terms import Term, Triple
from streamgauge.oracle.judging.metrics import percentile
from streamgauge.servers.broker.broker import Broker
from streamgauge.servers.broker.limits import LimitError, Limits
from streamgauge.servers.broker.strategies import begin
from streamgauge.suites.sepbm.generator import rules_of, university

_LIMITS = Limits(lag=1_000_000, kept=1, waiting=100_000, rows=10_000, effort=500_000)


Measured: TypeAlias = tuple[list[float], list[float]]
"""CPU and wall ms of calls."""


def measured(calls: Iterable[Callable[[], object]]) -> Measured:
    """CPU and wall ms of each call."""
    cpu, wall = list[float](), list[float]()
    for call in calls:
        spent, clock = time.process_time_ns(), time.perf_counter_ns()
        call()
        cpu.append((time.process_time_ns() - spent) / 1e6)
        wall.append((time.perf_counter_ns() - clock) / 1e6)
    return cpu, wall


def line(label: str, times: Measured) -> str:
    """Mean, median, 99th percentile and maximum, of CPU and of the wall clock."""
    said = []
    for kind, each in zip(("cpu", "wall"), times, strict=True):
        p50, p99 = percentile(each, 50) or 0.0, percentile(each, 99) or 0.0
        said.append(f"{kind} mean {fmean(each):7.3f} p50 {p50:7.3f} p99 {p99:7.3f} max {max(each):8.3f}")
    return f"{label:>20} ms: {'; '.join(said)}"


def created(broker: Broker, queries: Iterator[Drawn], number: int) -> tuple[Measured, int]:
    """A channel a query, until there are so many; the times of those, and how many queries were passed over."""
    cpu, wall, refused = list[float](), list[float](), 0
    while len(cpu) < number:
        name, text = f"c{len(cpu)}", next(queries).text
        try:
            times = measured([lambda name=name, text=text: broker.create_channel(name, text)])
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
    return facts, [tuple(described[each]) for each in chosen], ontology


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--channels", type=int, default=1000)
    parser.add_argument("--publications", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--open", type=float, default=OPEN)
    parser.add_argument("--profile", choices=("create", "publish"))
    asked = parser.parse_args()
    random = Random(asked.seed)
    facts, graphs, ontology = world(asked.publications, random)
    out = {triple for graph in graphs for triple in graph}
    broker = Broker(begin("incremental", rules_of(ontology)), lambda: 0, time.monotonic, None, _LIMITS)
    profile = cProfile.Profile()
    with lasting():
        broker.load(triple for triple in facts if triple not in out)
        if asked.profile == "create":
            profile.enable()
        made, refused = created(broker, Grammar(facts, random, asked.open).queries(), asked.channels)
        profile.disable()
    print(line("create", made), f"; passed over {refused}")
    if asked.profile == "publish":
        profile.enable()
    for kind, given in (("facts", [(random.choice(graph),) for graph in graphs]), ("descriptions", graphs)):
        for label, operation in (("publish", broker.publish), ("delete", broker.delete)):
            before = sum(each.number for each in broker.channels())
            times = measured(lambda graph=graph, operation=operation: operation(graph) for graph in given)
            told = sum(each.number for each in broker.channels()) - before
            print(line(f"{label} {kind}", times), f"; channels told {told / len(given):.1f}")
    profile.disable()
    if asked.profile:
        pstats.Stats(profile).sort_stats("tottime").print_stats(35)
    broker.close()


if __name__ == "__main__":
    main()
