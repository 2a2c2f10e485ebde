"""Real-time mode beside micro-batches, from a real Kafka to a real Kafka, both in one run: event to answer.

python -m benchmarks.real_time [--rate 500] [--seconds 40] [--warm 60] [--checkpoint 30]

`select` is a star with FILTER and BIND: the same plan of Spark's expressions runs in real-time mode and in
micro-batches that begin one after the other. `average` is a window's AVG and COUNT by sensor, updated by each
observation, in real-time mode (micro-batches have no such answer). An observation's latency is from handing it to the
producer until its answer is read by a consumer, both in this process. Seconds of ``--warm`` come before and do not
count. A broker of one node, a Spark session of local[3] with 1.5 GB.
"""

import argparse
import os
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Consumer, Producer
from tests.sources.conftest import JARS, Kafka

from benchmarks.measure import cpu, options
from benchmarks.results import ResultTable
from streamgauge.engines.spark import real_time
from streamgauge.engines.spark.connector import connector
from streamgauge.engines.spark.pipeline import Job
from streamgauge.formats.lines import encode_element
from streamgauge.model.element import StreamElement
from streamgauge.query import parse
from streamgauge.semantics.profiles import UPDATES
from streamgauge.spark.session import session

STREAM: Final = "http://ex.org/streams/test"
DOUBLE: Final = "http://www.w3.org/2001/XMLSchema#double"
WINDOW: Final = f"FROM NAMED WINDOW <urn:w> ON <{STREAM}> [RANGE PT5S STEP PT5S]"
STAR: Final = "?o <urn:by> ?s ; <urn:value> ?v FILTER(?v >= 0.5)"
QUERIES: Final = {
    "select": f"SELECT ?o ?s ?twice {WINDOW} WHERE {{ WINDOW <urn:w> {{ {STAR} BIND(?v * 2 AS ?twice) }} }}",
    "average": f"SELECT ?s (AVG(?v) AS ?a) (COUNT(*) AS ?n) {WINDOW} "
    f"WHERE {{ WINDOW <urn:w> {{ {STAR} }} }} GROUP BY ?s",
}
MODES: Final[tuple[tuple[str, str, Mapping[str, str] | None], ...]] = (
    ("select", "micro-batches", {"processingTime": "0 seconds"}),
    ("select", "real-time", None),
    ("average", "real-time", None),
)


def observation(number: int, ms: int) -> bytes:
    """A star of two triples at that time."""
    item, value = f"<urn:o{number}>", f'"{number % 17}.5"^^<{DOUBLE}>'
    triples = ((item, "<urn:by>", f"<urn:s{number % 50}>"), (item, "<urn:value>", value))
    return encode_element(StreamElement(STREAM, ms, number, triples))


@contextmanager
def reading(broker: str, topic: str) -> Iterator[dict[int, float]]:
    """When the first answer to the message at each offset was read, s of the monotonic clock."""
    times: dict[int, float] = {}
    over = threading.Event()

    def read() -> None:
        consumer = Consumer({"bootstrap.servers": broker, "group.id": "answers", "auto.offset.reset": "earliest"})
        consumer.subscribe([topic])
        while not over.is_set():
            message = consumer.poll(0.1)
            if message is not None and message.error() is None:
                times.setdefault(int(message.key().split()[2].partition(b".")[0]), time.monotonic())
        consumer.close()

    thread = threading.Thread(target=read)
    thread.start()
    try:
        yield times
    finally:
        over.set()
        thread.join()


def produced(broker: str, topic: str, arguments: argparse.Namespace) -> list[float]:
    """Send observations at the rate, and when each was handed over."""
    producer = Producer({"bootstrap.servers": broker, "linger.ms": 0})
    began, handed = time.monotonic(), list[float]()
    for number in range(arguments.rate * (arguments.warm + arguments.seconds)):
        time.sleep(max(0.0, began + number / arguments.rate - time.monotonic()))
        handed.append(time.monotonic())
        producer.produce(topic, observation(number, number * 1000 // arguments.rate))
        producer.poll(0)
    assert producer.flush(60) == 0
    return handed


def latencies(
    spark: Any, kafka: Kafka, arguments: argparse.Namespace, name: str, trigger: Mapping[str, str] | None
) -> list[float]:
    """The latency (ms) of each observation after the warm-up, ascending."""
    broker, source, sink = f"127.0.0.1:{kafka.port}", kafka.topic(), kafka.topic()
    text = QUERIES[name]
    with tempfile.TemporaryDirectory() as checkpoint:
        places = (f"kafka://{broker}/{source}?from=earliest", f"kafka://{broker}/{sink}", Path(checkpoint))
        job = Job(parse(text), text, "rspql", UPDATES, *places, every=arguments.checkpoint * 1000)
        running = real_time.started(spark, job, trigger)
        with reading(broker, sink) as times:
            handed = produced(broker, source, arguments)
            ends = time.monotonic() + 60
            while len(times) < len(handed) and time.monotonic() < ends:
                time.sleep(0.1)
        running.stop()
    first = arguments.rate * arguments.warm
    assert all(number in times for number in range(first, len(handed))), f"{len(handed) - len(times)} without an answer"
    return sorted(1000 * (times[number] - handed[number]) for number in range(first, len(handed)))


def main() -> None:
    """Measure all modes and print their table."""
    arguments = options(__doc__, rate=500, seconds=40, warm=60, checkpoint=30)
    columns = ("query", "mode", "answers", "p50 ms", "p99 ms", "most ms", "over 100 ms", "CPU s", "load")
    with ResultTable("real_time", columns) as table, tempfile.TemporaryDirectory() as root:
        kafka = Kafka(JARS, Path(root))
        kafka.start()
        try:
            spark = session(
                "local[3]", memory="1500m", shuffle=1, also=real_time.LatencyChoice(None, connector()).settings
            )
            middle = {}
            for name, mode, trigger in MODES:
                before = cpu()
                times = latencies(spark, kafka, arguments, name, trigger)
                middle[name, mode] = times[len(times) // 2]
                figures = (middle[name, mode], times[len(times) * 99 // 100], times[-1])
                late, load = (
                    f"{sum(milliseconds > 100 for milliseconds in times) / len(times):.1%}",
                    f"{os.getloadavg()[0]:.1f}",
                )
                cells = (*(f"{figure:.1f}" for figure in figures), late, f"{cpu() - before:.1f}", load)
                table.add(name, mode, len(times), *cells)
            ratio = middle["select", "micro-batches"] / middle["select", "real-time"]
            print(f"p50 of micro-batches over p50 of real-time mode: {ratio:.0f}")
            spark.stop()
        finally:
            kafka.kill()


if __name__ == "__main__":
    main()
