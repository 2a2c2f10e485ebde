"""Notifications of the broker's strategies on LUBM, in process, without a journal: SEP-BM's sequence and metrics.

python -m benchmarks.broker --lubm FOLDER [--copies 13] [--publications 300] [--some 5] [--rule first|any] [--only NAME]
FOLDER holds univ-bench.owl and lubm-1-0.nt.gz. The data are `copies` of LUBM(1,0), each under a university of its own
(13 have about as many facts as LUBM(10)), each person with three more statements (surname, mailbox, first name).
Publications are concise bounded descriptions of resources that the 20 queries' answers name, an equal number a query:
of the first variable's, or of any IRI's. All facts but those are loaded, then the 20 channels are made, then the
sequence is published one by one, deleted in the same order and published again. Each strategy runs in a process of its
own; those that evaluate again get the first `some` of the sequence only. Notification time is from the publish call to
the wake-up of the subscriber, an average over rows; a row counts from the publication that `incremental` named for it.
`cpu` is the thread's own time per publication: on a machine with other work it is what a quiet one shows as wall time.
"""

import argparse
import gc
import json
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

import psutil

from streamgauge.compute.reasoning import read_rules
from streamgauge.model.terms import Row, Triple, is_iri
from streamgauge.services.broker.broker import Broker
from streamgauge.services.broker.limits import Limits
from streamgauge.services.broker.strategies import begin, strategies
from streamgauge.wire.formats import read_triples

UB, FOAF = "<http://www.lehigh.edu/~zhp2/2004/0401/univ-bench.owl#", "<http://xmlns.com/foaf/0.1/"
NAMES = ("Adams", "Baker", "Cruz", "Dahl", "Evans", "Fox", "Garcia", "Hill", "Ito", "Jones", "Khan", "Lopez", "Moore")
QUERIES = sorted(
    (each.name[:3], each.read_text("utf-8"))
    for each in files("streamgauge.workloads").joinpath("university", "queries").iterdir()
    if each.name.endswith(".rq")
)
SEED = 20
ENDLESS = Limits(kept=1_000_000, kept_bytes=1 << 40, lag=1_000_000)


@dataclass
class Measured:
    """Times of one pass, in seconds: of each publication (wall, CPU), and of each row's notification."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    rows: list[float] = field(default_factory=list)


def data(folder: Path, copies: int) -> Iterator[Triple]:
    """LUBM(1,0) `copies` times, extended."""
    first = list(read_triples(folder / "lubm-1-0.nt.gz"))
    for number in range(copies):
        for triple in first:
            subject, predicate, end = (each.replace("University0.edu", f"University{number}.edu") for each in triple)
            yield subject, predicate, end
            if predicate == f"{UB}emailAddress>":
                yield from extended(subject)


def extended(person: str) -> Iterator[Triple]:
    """Three more statements about a person."""
    draw = random.Random(person)
    surname, first = draw.choice(NAMES), draw.choice(NAMES)
    yield person, f"{FOAF}surname>", f'"{surname}"'
    yield person, f"{FOAF}firstName>", f'"{first}"'
    yield person, f"{FOAF}mbox>", f'"{first}.{surname}@{draw.randrange(10**6)}.edu"'


def sequence(broker: Broker, facts: Iterable[Triple], rule: str, publications: int) -> list[list[Triple]]:
    """Concise bounded descriptions of what the answers name, an equal number a query, in a drawn order."""
    draw, share = random.Random(SEED), publications // len(QUERIES)
    chosen: dict[str, None] = {}
    for name, _ in QUERIES:
        rows = sorted(broker.rows(name)[1])
        named = sorted({each for row in rows for each in (row if rule == "any" else row[:1]) if each and is_iri(each)})
        fresh = [each for each in draw.sample(named, len(named)) if each not in chosen]
        chosen.update(dict.fromkeys(fresh[:share]))
    described: dict[str, list[Triple]] = {name: [] for name in chosen}
    for triple in facts:
        if triple[0] in described:
            described[triple[0]].append(triple)
    graphs = [graph for graph in described.values() if graph]
    return draw.sample(graphs, len(graphs))


def publish(broker: Broker, graphs: Sequence[list[Triple]], sign: str, first: dict[tuple[str, Row], int]) -> Measured:
    """Publish (or delete) one after the other; `first` says which publication allowed a row."""
    measured, began, woken = Measured(), [], dict[str, float]()
    channels = {
        name: broker.subscribe(name, "b", lambda name=name: woken.setdefault(name, time.perf_counter()))
        for name, _ in QUERIES
    }
    for number, graph in enumerate(graphs):
        cpu, start = time.thread_time(), time.perf_counter()
        (broker.publish if sign == "+" else broker.delete)(graph)
        measured.wall.append(time.perf_counter() - start)
        measured.cpu.append(time.thread_time() - cpu)
        began.append(start)
        for name, at in woken.items():
            for told in channels[name].take():
                for row in told.added if sign == "+" else told.removed:
                    measured.rows.append(at - began[first.setdefault((name, row), number)])
        woken.clear()
    for name, subscribed in channels.items():
        subscribed.close()
        broker.unsubscribe(name, "b")
    return measured


def run(name: str, options: argparse.Namespace) -> dict[str, object]:
    """One strategy from the beginning, in this process."""
    folder = Path(options.lubm)
    rules = read_rules(read_triples(folder / "univ-bench.owl"))
    graphs = [list(map(tuple, graph)) for graph in json.loads(Path(options.sequence).read_text())]
    withheld = {triple for graph in graphs for triple in graph}
    broker = Broker(begin(name, rules), lambda: 0, time.perf_counter, limits=ENDLESS)
    start = time.perf_counter()
    broker.load(each for each in data(folder, options.copies) if each not in withheld)
    loaded = time.perf_counter() - start
    for channel, text in QUERIES:
        broker.create_channel(channel, text)
    asked = time.perf_counter() - start - loaded
    gc.collect()
    gc.freeze()
    some = graphs if name == "incremental" else graphs[: options.some]
    passes = [publish(broker, some, sign, {}) for sign in "+-+"]
    memory = psutil.Process().memory_info().rss / 2**20
    facts = len(broker.facts())
    return {
        "strategy": name, "facts": facts, "load s": loaded, "channels s": asked, "MiB": memory,
        "publications": len(some), "notified": sum(len(each.rows) for each in passes[:1]),
    } | figures("publish", passes[0]) | figures("delete", passes[1]) | figures("again", passes[2])  # fmt: skip


def figures(label: str, measured: Measured) -> dict[str, object]:
    """Milliseconds."""
    found: dict[str, object] = {}
    for kind, times in (("wall", measured.wall), ("cpu", measured.cpu), ("row", measured.rows)):
        if times:
            ordered = sorted(times)
            found[f"{label} {kind} mean"] = 1000 * statistics.mean(times)
            found[f"{label} {kind} median"] = 1000 * statistics.median(times)
            found[f"{label} {kind} p99"] = 1000 * ordered[max(0, int(0.99 * len(ordered)) - 1)]
    return found


def prepared(options: argparse.Namespace, path: Path) -> None:
    """Choose the sequence once for all strategies."""
    folder = Path(options.lubm)
    rules = read_rules(read_triples(folder / "univ-bench.owl"))
    broker = Broker(begin("incremental", rules), lambda: 0, time.perf_counter, limits=ENDLESS)
    broker.load(data(folder, options.copies))
    for channel, text in QUERIES:
        broker.create_channel(channel, text)
    path.write_text(json.dumps(sequence(broker, data(folder, options.copies), options.rule, options.publications)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lubm", required=True)
    parser.add_argument("--copies", type=int, default=13)
    parser.add_argument("--publications", type=int, default=300)
    parser.add_argument("--some", type=int, default=5)
    parser.add_argument("--rule", choices=["first", "any"], default="first")
    parser.add_argument("--only")
    parser.add_argument("--sequence", default="broker-sequence.json")
    options = parser.parse_args()
    if options.only == "prepare":
        prepared(options, Path(options.sequence))
    elif options.only is not None:
        print(json.dumps(run(options.only, options)))
    else:
        words = [sys.executable, "-m", "benchmarks.broker", *sys.argv[1:], "--only"]
        subprocess.run([*words, "prepare"], check=True)
        found = [json.loads(subprocess.check_output([*words, name])) for name in strategies()]
        Path(options.sequence).unlink()
        table(found)


def table(found: Sequence[dict[str, object]]) -> None:
    """One column a strategy; below, times of mean notification over the incremental one's."""
    for key in dict.fromkeys(key for each in found for key in each):
        print(f"{key:>22} " + " ".join(f"{_shown(each.get(key)):>14}" for each in found))
    (exact,) = (each for each in found if each["strategy"] == "incremental")
    ratios = [float(str(each["publish row mean"])) / float(str(exact["publish row mean"])) for each in found]
    print(f"{'ratio of row mean':>22} " + " ".join(f"{ratio:>14,.0f}" for ratio in ratios))


def _shown(value: object) -> str:
    return (
        f"{value:,.3f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value or "-")
    )


if __name__ == "__main__":
    main()
