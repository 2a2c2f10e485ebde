"""A publication's time with many channels that are the 20 queries with other constants, and with a journal.

python -m benchmarks.broker_channels --lubm FOLDER [--channels 20 1000 10000] [--publications 300]
LUBM(1,0), extended as in benchmarks.broker, strategy `incremental`. Of each query the department, university, course
or person that it names is drawn anew, else a class that it names, or the letters of its condition; queries that come
out the same stay so. `told` is the mean number of channels that a publication is told to. The last line is with the
20 queries, one subscriber each, and a journal on disk: 32 publications wait at a time and are made durable together.
"""

import argparse
import gc
import random
import re
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.broker import ENDLESS, QUERIES, data, sequence
from streamgauge.compute.reasoning import Rules, read_rules
from streamgauge.model.terms import Triple
from streamgauge.services.broker.broker import Broker
from streamgauge.services.broker.sqlite import SqliteJournal
from streamgauge.services.broker.strategies import begin
from streamgauge.wire.formats import read_triples

HOST = "<http://www."
CLASSES = (
    "Person", "Student", "GraduateStudent", "UndergraduateStudent", "Employee", "Faculty", "Professor",
    "FullProfessor", "AssociateProfessor", "AssistantProfessor", "Lecturer", "Chair", "Course",
    "GraduateCourse", "Work", "Publication", "Organization", "Department", "ResearchGroup", "University",
)  # fmt: skip
WAITING = 32


def varied(text: str, draw: random.Random) -> str:
    """The query with other constants."""
    head, where, body = text.partition("WHERE")
    if HOST in body:
        body = re.sub(r"Department\d+\.", lambda _: f"Department{draw.randrange(15)}.", body)
        body = re.sub(r"<http://www.University\d+", lambda _: f"<http://www.University{draw.randrange(1000)}", body)
        body = re.sub(r"(Course|Professor)\d+>", lambda found: f"{found[1]}{draw.randrange(30)}>", body)
    else:
        body = re.sub(r"a ub:\w+", lambda _: f"a ub:{draw.choice(CLASSES)}", body, count=1)
        body = body.replace("A|B|C|D", "|".join(draw.sample("ABCDEFGHIJKLMNOPQRSTUVWXYZ", 4)))
    return head + where + body


def timed(broker: Broker, graphs: Sequence[list[Triple]]) -> tuple[list[float], list[float]]:
    """Wall and CPU seconds of each publication."""
    wall, cpu = [], []
    for graph in graphs:
        spent, start = time.thread_time(), time.perf_counter()
        broker.publish(graph)
        wall.append(time.perf_counter() - start)
        cpu.append(time.thread_time() - spent)
    return wall, cpu


def many(rules: Rules, facts: Sequence[Triple], graphs: Sequence[list[Triple]], channels: int) -> None:
    broker, draw = Broker(begin("incremental", rules), lambda: 0, time.perf_counter, limits=ENDLESS), random.Random(1)
    broker.load(facts)
    start = time.perf_counter()
    for number in range(channels):
        name, text = QUERIES[number % len(QUERIES)]
        broker.create_channel(f"{name}-{number}", varied(text, draw) if channels > len(QUERIES) else text)
    made = time.perf_counter() - start
    gc.collect()
    gc.freeze()
    before = sum(each.number for each in broker.channels())
    wall, cpu = timed(broker, graphs)
    told = (sum(each.number for each in broker.channels()) - before) / len(graphs)
    print(f"{channels:>7,} channels, made in {made:,.0f} s, {told:,.1f} told: {shown(wall, cpu)}")


def durable(rules: Rules, facts: Sequence[Triple], graphs: Sequence[list[Triple]], folder: Path) -> None:
    journal = SqliteJournal(folder / "journal")
    broker = Broker(begin("incremental", rules), lambda: 0, time.perf_counter, journal, ENDLESS)
    broker.load(facts)
    for name, text in QUERIES:
        broker.create_channel(name, text)
        broker.subscribe(name, "b", lambda: None)
    start, spent = time.perf_counter(), time.thread_time()
    for first in range(0, len(graphs), WAITING):
        for graph in graphs[first : first + WAITING]:
            broker.submit(tuple(graph), ())
        broker.step()
    wall, cpu = time.perf_counter() - start, time.thread_time() - spent
    print(f"journal: {len(graphs) / wall:,.0f} publications/s, {1000 * cpu / len(graphs):.3f} ms CPU each")


def shown(wall: Sequence[float], cpu: Sequence[float]) -> str:
    parts = [f"{name} mean {1000 * statistics.mean(times):.3f} median {1000 * statistics.median(times):.3f} ms"
             for name, times in (("wall", wall), ("CPU", cpu))]  # fmt: skip
    return ", ".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lubm", required=True)
    parser.add_argument("--channels", type=int, nargs="+", default=[20, 1000, 10_000])
    parser.add_argument("--publications", type=int, default=300)
    options = parser.parse_args()
    folder = Path(options.lubm)
    rules, every = read_rules(read_triples(folder / "univ-bench.owl")), list(data(folder, 1))
    broker = Broker(begin("incremental", rules), lambda: 0, time.perf_counter, limits=ENDLESS)
    broker.load(every)
    for name, text in QUERIES:
        broker.create_channel(name, text)
    graphs = sequence(broker, every, "first", options.publications)
    withheld = {triple for graph in graphs for triple in graph}
    facts = [triple for triple in every if triple not in withheld]
    with tempfile.TemporaryDirectory() as temporary:
        durable(rules, facts, graphs, Path(temporary))
    for channels in options.channels:
        many(rules, facts, graphs, channels)


if __name__ == "__main__":
    main()
