"""`streamgauge stream` from a real Kafka broker, killed in the middle again and again: every answer is there once."""

import random
from dataclasses import replace

import pytest

from streamgauge.formats.lines import encode_element
from streamgauge.formats.stream import elements
from streamgauge.sources import open_sink
from tests.prove.streamed import Streamed, observed
from tests.prove.weathered import late_stream
from tests.sources.conftest import kafka, kafka_jars

pytestmark = pytest.mark.prove

__all__ = ["kafka", "kafka_jars"]

KILLS = 6


def test_killed_in_the_middle_of_a_topic_every_answer_is_there_once(kafka, tmp_path, capsys):
    (tmp_path / "stream").mkdir()
    came = list(elements(late_stream(tmp_path / "stream", 60)))
    url = f"kafka://127.0.0.1:{kafka.port}/{kafka.topic(partitions=2)}?from=earliest"
    job = Streamed(tmp_path, url, observed("RSTREAM", 5, 2), ("--lateness", "4s", "--messages", "150"))
    sink = open_sink(url.partition("?")[0])
    for element in came:
        sink.send(encode_element(element), key=str(element.sequence))
    assert sink.close().undelivered == 0
    points = job.killed("topic", random.Random(7), KILLS)
    landed = list(elements(job.checkpoint / "landed"))
    assert sorted(item.added for item in landed) == sorted(item.added for item in came), "nothing lost, nothing twice"
    whole = replace(job, source=job.checkpoint / "landed")
    assert whole.reports() == whole.expected()
    with capsys.disabled():
        print(f"\ntopic: killed at (begun, committed) {points}; {len(whole.reports())} reports, {len(landed)} elements")
