"""Cost of a publication by SEP-BM configuration: growth with the data, with channels, of deletions.

python -m benchmarks.broker FOLDER... [--system broker_inprocess] [--option strategy=incremental] [--first N]
A FOLDER is what `streamgauge sepbm generate` writes: of LUBM(1), (5), (10), (20) for growth with the data, with
`--channels 10000` for many channels. A system is an adapter of `streamgauge.suites.sepbm.adapters`, in process; option
`journal=FOLDER` makes it durable. For each folder there is a process of its own: the base load, the channels with a
subscriber each, then the sequence's publications are published one by one, deleted in the same order, and published
again. `wall` is from the call to its return, when all subscribers have been told; `cpu` is the process's own time for
it, which other work on the machine does not change; `row` is from the call to the subscriber, an average over rows.
What puts evaluations off (stringrs, graphss) tells some rows at the end only: `streamgauge sepbm` measures those.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from statistics import fmean, median

import psutil

from streamgauge.incremental.budget import gc_frozen
from streamgauge.oracle.judging.metrics import percentile
from streamgauge.servers.broker.contract import Publication
from streamgauge.suites.sepbm import ReceivedNotification, SepbmSystem, Stored, read
from streamgauge.suites.sepbm.adapters import start

Figures = dict[str, int | float | str]


@dataclass
class Pass:
    """Seconds of each publication, wall and CPU, and of each row's way to its subscriber."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    row: list[float] = field(default_factory=list)
    told: int = 0

    def figures(self, label: str) -> Figures:
        """Milliseconds."""
        found: Figures = {f"{label} per s": len(self.wall) / sum(self.wall)}
        for kind, times in (("wall", self.wall), ("cpu", self.cpu), ("row", self.row)):
            if times:
                each = {"mean": fmean(times), "median": median(times), "p99": percentile(times, 99) or 0.0}
                found |= {f"{label} {kind} {name}": 1000 * value for name, value in each.items()}
        return found | {f"{label} channels told": self.told / len(self.wall)}


def measured(system: SepbmSystem, publications: Iterable[Publication], ear: list[ReceivedNotification]) -> Pass:
    """Feed publications one after the other."""
    found = Pass()
    for publication in publications:
        spent, called, clock = time.process_time(), time.monotonic_ns(), time.perf_counter()
        system.feed(publication)
        system.settle()
        found.wall.append(time.perf_counter() - clock)
        found.cpu.append(time.process_time() - spent)
        for each in ear:
            found.row += [(each.received - called) / 1e9] * (len(each.added) + len(each.removed))
        found.told += len(ear)
        ear.clear()
    return found


def run(configuration: Stored, name: str, options: Mapping[str, str], first: int | None) -> Figures:
    """All passes on one configuration."""
    graphs = [each.added for each in islice(configuration.sequence(), first) if each.added]
    system, ear = start(name, options), list[ReceivedNotification]()
    began = time.process_time()
    with gc_frozen():
        system.start(configuration)
        loaded = time.process_time()
        for channel in configuration.channels:
            system.subscribe(channel, ear.append)
        asked = time.process_time()
    found: Figures = {
        "configuration": configuration.folder.name,
        "closure": str(configuration.about.made.get("closure", "?")),
        "channels": len(configuration.channels),
        "publications": len(graphs),
        "load, cpu s": loaded - began,
        "channels, cpu s": asked - loaded,
    }
    published = [Publication(number, graph, ()) for number, graph in enumerate(graphs, 1)]
    deleted = [Publication(number, (), graph) for number, graph in enumerate(graphs, 1)]
    for label, publications in (("publish", published), ("delete", deleted), ("again", published)):
        found |= measured(system, publications, ear).figures(label)
    found["MiB"] = psutil.Process().memory_info().rss / 2**20
    system.close()
    return found


def table(columns: Sequence[Figures]) -> None:
    """One column a configuration."""
    for key in columns[0]:
        print(f"{key:>22} " + " ".join(f"{_shown(each.get(key, '')):>14}" for each in columns))


def _shown(value: float | str) -> str:
    return f"{value:,.3f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else value[-14:]


def main() -> None:
    """Each folder in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--system", default="broker_inprocess")
    parser.add_argument("--option", action="append", default=[], help="NAME=VALUE")
    parser.add_argument("--first", type=int)
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.here:
        options = dict(each.split("=", 1) for each in asked.option)
        print(json.dumps(run(read(asked.folders[0]), asked.system, options, asked.first)))
        return
    rest = [word for word in sys.argv[1:] if Path(word) not in asked.folders]
    words = [[sys.executable, "-m", "benchmarks.broker", str(folder), *rest, "--here"] for folder in asked.folders]
    table([json.loads(subprocess.check_output(each)) for each in words])


if __name__ == "__main__":
    main()
