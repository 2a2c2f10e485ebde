"""Cost of equal queries in the query service: answered together, or each by a session of its own.

python -m benchmarks.serving [--stations 200] [--seconds 12] [--queries 1 10 100] [--repeat 3]

Experiment 1's query (select), 5 s/5 s and 5 s/1 s, on the stream of ``benchmarks.live``, through the core of the
service in this process, without HTTP. Together: all were registered before the first element. Each its own: an element
lies between any two registrations. CPU time of the process in us, per element that was published after the last one;
the least of several runs.
"""

import argparse
import time
from collections.abc import Sequence

from benchmarks.measure import STREAM, observations
from benchmarks.results import ResultTable
from streamgauge import workloads
from streamgauge.engines import load
from streamgauge.model.element import StreamElement
from streamgauge.query import fill
from streamgauge.servers.queries.limits import QueryLimits
from streamgauge.servers.queries.registry import Queries
from streamgauge.servers.queries.requests import QueryRegistration
from streamgauge.workloads import query_text

BATCH = 500
WAIT_S = 600.0
SLIDES_S = (5, 1)


def microseconds(number: int, slide: int, fed: Sequence[StreamElement], between: Sequence[StreamElement]) -> float:
    """CPU per element with so many queries; ``between`` are published one by one between their registrations."""
    queries = Queries(load, ("live",), QueryLimits(waiting=len(fed) + 1))
    size = {"WSIZE": "5s", "WSLIDE": f"{slide}s", "TEMP": "50"}
    registration = QueryRegistration(fill(query_text(workloads.load("weather"), "select"), size), dialect="rspql")
    queries.register(registration)
    for element in between[: number - 1]:
        queries.publish(STREAM, [element])
        queries.register(registration)
    for _ in range(number - 1 - len(between)):
        queries.register(registration)
    queries.settle(WAIT_S)
    began = time.process_time()
    for at in range(0, len(fed), BATCH):
        queries.publish(STREAM, fed[at : at + BATCH])
        queries.settle(WAIT_S)
    spent = time.process_time() - began
    queries.close("measured")
    return spent / len(fed) * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stations", type=int, default=200)
    parser.add_argument("--seconds", type=int, default=12)
    parser.add_argument("--queries", type=int, nargs="+", default=[1, 10, 100])
    parser.add_argument("--repeat", type=int, default=3)
    given = parser.parse_args()
    between = list(observations(max(given.queries), 0))
    fed = [each for second in range(1, given.seconds + 1) for each in observations(given.stations, second)]
    columns = ("window", "queries", "together, us", "each its own, us", "ratio")
    with ResultTable("serving", columns) as table:
        for slide in SLIDES_S:
            for number in given.queries:
                together, own = (
                    min(microseconds(number, slide, fed, each) for _ in range(given.repeat)) for each in ((), between)
                )
                ratio = f"{own / together:.1f}x" if number > 1 else ""
                table.add(f"5 s/{slide} s", number, f"{together:,.1f}", f"{own:,.1f}", ratio)


if __name__ == "__main__":
    main()
