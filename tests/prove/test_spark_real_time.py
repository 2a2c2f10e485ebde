"""Real-time mode from Kafka to Kafka: killed ten times and judged right, and its latency beside micro-batches."""

import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from streamgauge.formats.lines import decode_answer, encode_element
from streamgauge.formats.stream import write
from streamgauge.model.answer import Answer
from streamgauge.model.element import StreamElement
from streamgauge.model.run import Fed, Run, RunHeader
from streamgauge.model.verdict import Judgement
from streamgauge.oracle.judging.judge import Means, judge_run
from streamgauge.query import parse
from streamgauge.semantics.profiles import UPDATES
from tests.prove.streamed import kill
from tests.sources.conftest import Kafka, kafka, kafka_jars

pytestmark = pytest.mark.prove

__all__ = ["kafka", "kafka_jars"]

KILLS = 10
DOUBLE = "http://www.w3.org/2001/XMLSchema#double"
STREAM = "http://ex.org/streams/test"
WINDOW = f"FROM NAMED WINDOW <urn:w> ON <{STREAM}> [RANGE PT2S STEP PT2S]"
STAR = "?o <urn:by> ?s ; <urn:value> ?v FILTER(?v > 1.0)"
QUERIES = {
    "select": f"SELECT ?o ?s ?twice {WINDOW} WHERE {{ WINDOW <urn:w> {{ {STAR} BIND(?v * 2 AS ?twice) }} }}",
    "average": f"SELECT ?s (AVG(?v) AS ?mean) (COUNT(*) AS ?n) {WINDOW} "
    f"WHERE {{ WINDOW <urn:w> {{ {STAR} }} }} GROUP BY ?s",
}


def answered(messages: Iterable[tuple[str, bytes]]) -> list[Answer]:
    """The answers in messages (key, line), in the order of the elements: the rows of one element are one answer.

    Of messages with the same key, which a crash may leave, the last one counts.
    """
    rows: dict[tuple[int, int, int], dict[int, Answer]] = {}
    for key, line in messages:
        _name, partition, place, _instant, row = key.rsplit(" ", 4)
        offset, _, item = place.partition(".")
        rows.setdefault((int(partition), int(offset), int(item)), {})[int(row)] = decode_answer(line)
    answers = []
    for _, own in sorted(rows.items()):
        first, *others = (own[place] for place in sorted(own))
        answers.append(replace(first, added=(*first.added, *(row for other in others for row in other.added))))
    return answers


def observation(number: int, ms: int) -> StreamElement:
    """A star of two triples; one in 17 is filtered out."""
    item = f"<urn:o{number}>"
    value = f'"{number % 17}.5"^^<{DOUBLE}>'
    return StreamElement(STREAM, ms, number, ((item, "<urn:by>", f"<urn:s{number % 5}>"), (item, "<urn:value>", value)))


@dataclass
class Observed:
    """A topic of observations, one of answers, and the job between them as a process."""

    kafka: Kafka
    root: Path
    text: str
    sent: list[StreamElement] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.source, self.answers = self.kafka.topic(), self.kafka.topic()
        (self.root / "query.rq").write_text(self.text)

    def start(self) -> "subprocess.Popen[bytes]":
        broker = f"kafka://127.0.0.1:{self.kafka.port}"
        places = ["--from", f"{broker}/{self.source}?from=earliest", "--to", f"{broker}/{self.answers}"]
        more = ["--checkpoint", str(self.root / "checkpoint"), "--latency", "real-time", "--batch", "2s"]
        program = [sys.executable, "-m", "streamgauge.cli.main", "stream", str(self.root / "query.rq")]
        words = (self.root / "words.txt").open("ab")
        quick = {"SPARK_DRIVER_MEMORY": "1500m", "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1"}
        command = [*program, *places, *more]
        return subprocess.Popen(command, stdout=words, stderr=words, start_new_session=True, env=os.environ | quick)

    def produce(self, rate: float, over: threading.Event) -> None:
        """So many observations a second until it is over."""
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": f"127.0.0.1:{self.kafka.port}"})
        began = time.monotonic()
        while not over.is_set():
            number = len(self.sent)
            time.sleep(max(0.0, began + number / rate - time.monotonic()))
            self.sent.append(observation(number, int(1000 * number / rate)))
            producer.produce(self.source, encode_element(self.sent[-1]))
            producer.poll(0)
        assert producer.flush(60) == 0

    def messages(self) -> Iterator[tuple[str, bytes]]:
        """The answers that are there, as they stand in the topic."""
        from confluent_kafka import Consumer, TopicPartition

        where = {"bootstrap.servers": f"127.0.0.1:{self.kafka.port}", "enable.partition.eof": True}
        consumer = Consumer({**where, "group.id": "all", "enable.auto.commit": False})
        consumer.assign([TopicPartition(self.answers, 0, 0)])
        try:
            while (message := consumer.poll(60)) is not None:
                if message.error():
                    return
                yield message.key().decode(), message.value()
        finally:
            consumer.close()

    def judged(self) -> Judgement:
        """The verdict on the answers, each key's last, over all that was sent."""
        query = parse(self.text)
        write(self.sent, self.root / "stream.parquet")
        header = RunHeader("spark", query, self.text, "rspql", UPDATES, self.sent[-1].time, 0, evaluator="spark")
        fed = tuple(Fed(element.sequence, element.time, 0, 0, len(element.added)) for element in self.sent)
        answers = answered(self.messages())
        run = Run(header, tuple(answers), fed)
        return judge_run(
            run, self.root / "stream.parquet", Means(lambda: pytest.fail("no Spark"), "definition")
        ).judgement


@pytest.mark.parametrize("name", QUERIES)
def test_killed_ten_times_every_update_is_right(name, kafka, tmp_path, capsys):
    job, draws, over = Observed(kafka, tmp_path, QUERIES[name]), random.Random(7), threading.Event()
    feeding = threading.Thread(target=job.produce, args=(20.0, over))
    feeding.start()
    seen = []
    try:
        for _ in range(KILLS):
            process = job.start()
            wait_for_more(job, process)
            time.sleep(draws.uniform(0, 3))
            assert process.poll() is None, (tmp_path / "words.txt").read_text()[-3000:]
            kill(process)
            seen.append(sum(1 for _ in job.messages()))
    finally:
        over.set()
        feeding.join()
    process = job.start()
    try:
        last = str(len(job.sent) - 1 if len(job.sent) % 17 != 1 else len(job.sent) - 2)
        ends = time.monotonic() + 300
        while not any(key.split(" ")[2] == f"{last}.0" for key, _ in job.messages()):
            assert time.monotonic() < ends, (tmp_path / "words.txt").read_text()[-3000:]
            time.sleep(1)
    finally:
        kill(process)
    keys = [key for key, _ in job.messages()]
    assert job.judged() is Judgement.RIGHT
    with capsys.disabled():
        twice = len(keys) - len(set(keys))
        print(
            f"\n{name}: {KILLS} kills at {seen} answers; {len(job.sent)} observations, {len(keys)} rows, {twice} again"
        )


def wait_for_more(job: Observed, process: "subprocess.Popen[bytes]") -> None:
    """Wait until the job has answered something new."""
    before, ends = sum(1 for _ in job.messages()), time.monotonic() + 300
    while sum(1 for _ in job.messages()) == before:
        words = (job.root / "words.txt").read_text()[-3000:]
        assert process.poll() is None, words
        assert time.monotonic() < ends, words
        time.sleep(0.5)
