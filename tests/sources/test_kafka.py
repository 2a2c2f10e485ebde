"""Kafka against a real broker that is killed: nothing lost, nothing doubled, the undelivered counted."""

import sys
from itertools import islice
from threading import Thread

import pytest

from streamgauge.formats.lines import encode_element
from streamgauge.model.answer import Answer
from streamgauge.model.element import StreamElement
from streamgauge.sources import Delivery, SourceError, open_sink, open_source
from streamgauge.sources.contract import parse_address
from streamgauge.sources.kafka import KafkaSinkOptions, KafkaSourceOptions
from streamgauge.sources.kafka_partitions import KafkaPartitions, reached_by
from streamgauge.watching import watch

from .conftest import Kafka, free_port


def element(number: int) -> StreamElement:
    return StreamElement("urn:s", 10 * number, number, ((f"<urn:a{number}>", "<urn:b>", "<urn:c>"),))


def numbers(items) -> list[int]:
    return [item.sequence for item in items]


def send(sink, elements, key=None) -> None:
    for one in elements:
        sink.send(encode_element(one), key=key)


@pytest.fixture
def topic(kafka: Kafka) -> str:
    return f"kafka://127.0.0.1:{kafka.port}/{kafka.topic()}"


def test_what_is_sent_comes_in_order(topic):
    source, sink = open_source(topic), open_sink(topic)
    send(sink, map(element, range(5000)), key="k")
    assert list(islice(source.items(), 5000)) == [element(n) for n in range(5000)]
    assert sink.close() == sink.close() == Delivery(5000, 0)
    source.close()
    source.close()
    with pytest.raises(SourceError, match="the sink is closed"):
        sink.send(b"late")
    assert numbers(open_all(f"{topic}?from=earliest&until=end")) == list(range(5000))
    assert numbers(open_all(f"{topic}?until=end")) == []


def open_all(url):
    source = open_source(url)
    try:
        yield from source.items()
    finally:
        source.close()


def test_partitions_are_all_read(kafka):
    url = f"kafka://127.0.0.1:{kafka.port}/{kafka.topic(partitions=3)}"
    sink = open_sink(url)
    for number in range(90):
        sink.send(encode_element(element(number)), key=f"k{number % 9}")
    assert sink.close() == Delivery(90, 0)
    result = numbers(open_all(f"{url}?from=earliest&until=end&lateness=10000"))
    assert sorted(result) == list(range(90))
    assert all(result.index(n) < result.index(n + 9) for n in range(81))


@pytest.mark.prove
def test_nothing_is_lost_nor_doubled_when_the_broker_is_killed_and_who_does_not_wait_for_it_says_so(kafka, topic):
    source, sink = open_source(f"{topic}?group=g"), open_sink(topic)
    items, result = source.items(), []
    send(sink, map(element, range(200)))
    result += numbers(islice(items, 150))
    reader = Thread(target=lambda: result.extend(numbers(islice(items, 450))))
    other = f"kafka://127.0.0.1:{kafka.port}/{kafka.topic()}"
    hasty, brief = open_source(f"{other}?patience=300"), open_sink(f"{other}?wait=3000&buffer=5")
    send(brief, [element(0)])
    coming = hasty.items()
    assert numbers([next(coming)]) == [0]
    reader.start()
    kafka.kill()
    try:
        send(sink, map(element, range(200, 400)))
        send(brief, map(element, range(1, 8)))
        delivery = brief.close()
        assert (delivery.sent, delivery.undelivered) == (1, 7)
        with pytest.raises(SourceError, match="the brokers were unavailable for more than 300 ms"):
            next(coming)
        hasty.close()
    finally:
        kafka.start()
    send(sink, map(element, range(400, 600)))
    assert sink.close() == Delivery(600, 0)
    reader.join(60)
    source.close()
    assert result == list(range(600))


def test_a_durable_watch_goes_on_behind_the_offsets_of_the_one_before(topic, tmp_path):
    """Ended twice in the middle of what was there, with more come since: as one that was never ended."""
    query = """SELECT ?s FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE PT0.05S STEP PT0.02S]
    WHERE { WINDOW <urn:w> { ?s ?p ?o } }"""
    source, sink = f"{topic}?from=earliest&until=end", open_sink(topic)
    answers: dict[int, Answer] = {}
    for first, enough in ((0, 60), (300, 190), (600, None)):
        send(sink, map(element, range(first, first + 300)))
        assert sink.settle().undelivered == 0
        with watch(query, source, end="stream", state=tmp_path) as watched:
            for answer in watched:
                assert answers.setdefault(watched.number, answer) == answer
                if len(answers) == enough:
                    break
            assert watched.gaps == []
    sink.close()
    assert list(answers) == list(range(1, len(answers) + 1))
    assert list(answers.values()) == list(watch(query, [element(number) for number in range(900)], end="stream"))


def test_what_a_killed_sink_had_sent_is_not_sent_again(kafka, topic):
    """Others write to the topic too; what a sink sent before its first mark, and behind its last one, is known."""
    lines = [b'{"number":%d}' % number for number in range(1, 40)]
    other, killed, marks = open_sink(topic), [], []
    other.send(lines[0])
    assert other.settle().undelivered == 0
    sent = 0
    for until, settled in ((10, 5), (12, 12), (30, 20), (39, 39)):
        sink = open_sink(topic)
        killed.append(sink)
        if marks:
            sink.restore(marks[-1][1])
            sent = marks[-1][0]
        else:
            marks.append((0, sink.mark()))
        for number in range(sent, until):
            sink.send(lines[number])
            other.send(b"theirs")
            if number + 1 == settled:
                assert sink.settle().undelivered == 0
                marks.append((settled, sink.mark()))
        assert sink.settle().undelivered == 0  # then it is killed: nothing says how far it came
    assert other.close().undelivered == 0
    log = KafkaPartitions(parse_address(topic), reached_by(parse_address(topic), KafkaSinkOptions()))
    values = [message.value() for message in log.between(0, 0, log.borders()[0][1], 5000)]
    log.close()
    assert [value for value in values if value != b"theirs"] == [lines[0], *lines]
    for sink in killed:  # a producer that is open logs in later tests that its broker is gone
        sink.close()


def test_a_group_goes_on_where_it_was_left(topic):
    sink = open_sink(topic)
    send(sink, map(element, range(6)))
    source = open_source(f"{topic}?group=g&from=earliest")
    assert numbers(islice(source.items(), 4)) == [0, 1, 2, 3]
    source.close()
    send(sink, map(element, range(6, 9)))
    assert sink.close() == Delivery(9, 0)
    assert numbers(open_all(f"{topic}?group=g&until=end")) == [3, 4, 5, 6, 7, 8]  # 3 was not yet done with
    assert numbers(open_all(f"{topic}?group=g&until=end")) == []
    assert numbers(open_all(f"{topic}?group=other&until=end")) == []


def test_bad_messages_are_named_by_partition_and_offset(topic):
    sink = open_sink(topic)
    send(sink, [element(0)])
    sink.send(b"nonsense")
    send(sink, [element(1)])
    assert sink.close() == Delivery(3, 0)
    with pytest.raises(SourceError, match="partition 0, offset 1: not a line of JSON"):
        list(open_all(f"{topic}?from=earliest"))
    source = open_source(f"{topic}?from=earliest&until=end&bad=skip")
    assert numbers(source.items()) == [0, 1]
    assert source.refused == 1
    source.close()


def test_too_large_a_message_is_undelivered(topic):
    sink = open_sink(topic)
    sink.send(b"x" * 2_000_000)
    send(sink, [element(0)])
    delivery = sink.close()
    assert (delivery.sent, delivery.undelivered) == (1, 1)
    assert "large" in (delivery.why or "")


def test_graphs_take_the_time_of_their_message(kafka, topic):
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": f"127.0.0.1:{kafka.port}"})
    producer.produce(topic.rsplit("/", 1)[1], b"<urn:a> <urn:b> <urn:c> .", timestamp=1_700_000_000_123)
    assert producer.flush(20) == 0
    (result,) = open_all(f"{topic}?from=earliest&until=end&form=turtle&time=arrival")
    assert (result.time, result.added) == (1_700_000_000_123, (("<urn:a>", "<urn:b>", "<urn:c>"),))


BAD = {
    "no topic": ("kafka://127.0.0.1:{port}", "expected kafka://host/topic"),
    "no broker": ("kafka://127.0.0.1:{port}/x", "Failed to get metadata: .*Connection refused"),
    "no option": (
        "kafka://127.0.0.1:{port}/x?client=a",
        "unknown option client: there are bad, base, brokers, ca, charset, context, csv_mapping, fold, form, from",
    ),
    "odd option": ("kafka://127.0.0.1:{port}/x?from=noon", "option from is 'noon': expected one of 'earliest'"),
}


@pytest.mark.server
@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_reached_is_named(monkeypatch, case):
    monkeypatch.setattr("streamgauge.sources.kafka._FIRST", 0.5)
    text, said = BAD[case]
    with pytest.raises(SourceError, match=said):
        open_source(text.format(port=free_port()))


def test_a_topic_that_is_not_there_is_named(kafka):
    with pytest.raises(SourceError, match=r"topic nowhere: .*[Uu]nknown topic"):
        open_source(f"kafka://127.0.0.1:{kafka.port}/nowhere")


@pytest.mark.server
def test_a_sink_without_a_broker_is_named(monkeypatch):
    monkeypatch.setattr("streamgauge.sources.kafka._FIRST", 0.5)
    with pytest.raises(SourceError, match=r"Failed to get metadata: .*Connection refused"):
        open_sink(f"kafka://127.0.0.1:{free_port()}/x")


def test_how_brokers_are_reached():
    plain = reached_by(parse_address("kafka://a/t"), KafkaSinkOptions(ca="unused"))
    assert plain == {"bootstrap.servers": "a:9092", "security.protocol": "PLAINTEXT"}
    safe = reached_by(
        parse_address("kafkas://me:it%21@a:1/t"),
        KafkaSourceOptions(brokers="b:2", sasl="SCRAM-SHA-256", ca="ca.pem"),
    )
    assert safe == {
        "bootstrap.servers": "a:1,b:2",
        "ssl.ca.location": "ca.pem",
        "security.protocol": "SASL_SSL",
        "sasl.mechanisms": "SCRAM-SHA-256",
        "sasl.username": "me",
        "sasl.password": "it!",
    }


def test_without_the_library_the_sentence_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(SourceError, match=r"Kafka needs confluent-kafka: pip install 'streamgauge\[kafka\]'"):
        open_sink("kafka://127.0.0.1/x")
