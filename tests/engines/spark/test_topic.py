"""A Kafka topic read by its offsets: which elements a batch has, in which order, and that a second start goes on."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from streamgauge.engines.spark.pipeline import run
from streamgauge.engines.spark.topic import TopicReader, _limited, _ordered, _rows
from streamgauge.formats.lines import encode_element
from streamgauge.formats.run import read_run
from streamgauge.formats.stream import elements
from streamgauge.model.semantics import Origin
from streamgauge.query import parse
from streamgauge.semantics.definition import expected
from streamgauge.sources import SourceError, open_sink
from streamgauge.sources.kafka import KafkaLog, Logged
from tests.engines.spark.test_pipeline import answers, job
from tests.notation import stream

CAME = stream(" | ".join(f"{100 * n}: a{n} p b{n}. a{n} q c{n}." for n in range(40)))
CAME = tuple(replace(element, sequence=place) for place, element in enumerate(CAME))


def sent(url: str, elements, partitions: int = 1) -> None:
    sink = open_sink(url)
    for element in elements:
        sink.send(encode_element(element), key=f"k{element.sequence % (5 * partitions)}")
    assert sink.close().undelivered == 0


@pytest.fixture
def topic(kafka):
    return f"kafka://127.0.0.1:{kafka.port}/{kafka.topic(partitions=2)}"


@pytest.mark.heavy("a query over a Kafka topic")
@pytest.mark.parametrize("parts", [(40,), pytest.param((20, 40), marks=pytest.mark.prove)])
def test_a_start_goes_on_behind_the_last_offset(spark, topic, tmp_path, parts):
    asked = job(tmp_path, source=f"{topic}?from=earliest")
    asked = replace(asked, semantics=replace(asked.semantics, lateness=4000, origin=Origin.FIXED, t0=0))
    for first, last in pairwise((0, *parts)):
        sent(topic, CAME[first:last], 2)
        progress = run(spark, replace(asked, drain=True), lambda _done: None)
        assert (progress.rows, progress.late) == (2 * last, 0)
    landed = pq.read_table(tmp_path / "checkpoint" / "landed")
    assert sorted(set(landed["subject"].to_pylist())) == sorted({e.added[0][0] for e in CAME})
    assert landed["sequence"].to_pylist() == [n // 2 for n in range(80)]
    header = read_run(tmp_path / "answers", parse).header
    came = list(elements(tmp_path / "checkpoint" / "landed"))
    due = expected(came, header.query, header.semantics, header.advanced_to, 0)
    assert answers(tmp_path)[0] == [((report.due.start, report.due.end), Counter(report.rows)) for report in due]
    assert sum(len(report.rows) for report in due) == 40


def test_offsets_are_read_again_as_they_were(topic):
    sent(topic, CAME, 2)
    log = KafkaLog(f"{topic}?from=earliest")
    ends = log.ends()
    assert log.begins() == {0: 0, 1: 0}
    assert sum(ends.values()) == 40
    twice = [list(log.between(0, 3, ends[0])) for _ in range(2)]
    assert twice[0] == twice[1]
    assert [item.offset for item in twice[0]] == list(range(3, ends[0]))
    assert KafkaLog(topic).begins() == ends
    log.close()


def test_messages_that_are_gone_are_named(topic, kafka):
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient

    sent(topic, CAME, 2)
    name = topic.rsplit("/", 1)[1]
    admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{kafka.port}"})
    admin.delete_records([TopicPartition(name, 0, 5)])[TopicPartition(name, 0)].result(30)
    log = KafkaLog(topic)
    with pytest.raises(SourceError, match="partition 0: the messages from offset 2 on have expired"):
        list(log.between(0, 2, 9))
    log.close()


def test_a_batch_takes_of_each_partition_by_its_share():
    assert _limited({"0": 10}, {"0": 110, "1": 300, "2": 0}, ReadMaxRows(40)) == {"0": 20, "1": 30, "2": 0}
    assert _limited({"0": 10}, {"0": 20}, ReadMaxRows(40)) == {"0": 20}


def test_what_is_there_at_the_start_is_all_that_is_taken(monkeypatch):
    reader, held = TopicReader("kafka://nowhere/t", 10), {"0": 5}
    monkeypatch.setattr(reader, "_ask", lambda _question: {int(name): end for name, end in held.items()})
    reader.prepareForTriggerAvailableNow()
    held["0"] = 9
    assert reader.latestOffset({"0": 2}, ReadAllAvailable()) == {"0": 5}
    spans = reader.partitions({"0": 2}, {"0": 5, "1": 4})
    assert [(span.partition, span.start, span.end) for span in spans] == [(0, 2, 5), (1, 0, 4)]
    assert reader.partitions({"0": 5}, {"0": 5}) == []


def test_rows_are_in_the_order_of_the_brokers_time_and_in_that_of_each_partition():
    """Partition 1's clock went back: its elements stay in the order of their offsets."""
    by_place = {(0, 7): 100, (0, 8): 300, (1, 3): 200, (1, 4): 150}
    pieces = [
        _rows(partition, [Logged(offset, 0, arrived, replace(CAME[offset], sequence=0))])
        for (partition, offset), arrived in reversed(by_place.items())
    ]
    result = _ordered(pa.Table.from_batches(pieces), 60)
    assert result["subject"].to_pylist() == [f"<urn:a{n}>" for n in (7, 7, 3, 3, 4, 4, 8, 8)]
    assert result["sequence"].to_pylist() == [60, 60, 61, 61, 62, 62, 63, 63]
    assert result["position"].to_pylist() == [0, 1] * 4
    assert "until" not in result.column_names
