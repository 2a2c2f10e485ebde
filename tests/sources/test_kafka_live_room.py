"""The workbench's room Live over a Kafka topic: read as it comes, paused and resumed, a broker that ends is named."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from streamgauge.formats.lines import encode_element
from streamgauge.model.element import StreamElement
from streamgauge.sources import open_sink
from tests.workbench.serving import opened

from .conftest import Kafka

QUERY = (
    "SELECT ?s (COUNT(*) AS ?n) FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE PT2S STEP PT2S] "
    "WHERE { WINDOW <urn:w> { ?s ?p ?o } } GROUP BY ?s"
)


@pytest.fixture
def bench(tmp_path: Any) -> Iterator[httpx.Client]:
    headers = {"accept": "text/html"}
    with opened(tmp_path) as bench, httpx.Client(base_url=bench.url, timeout=60, headers=headers) as client:
        yield client


def until(done: Callable[[], bool], what: Callable[[], str]) -> None:
    end = time.monotonic() + 60
    while not done():
        assert time.monotonic() < end, what()
        time.sleep(0.1)


def send(url: str, *times: int) -> None:
    sink = open_sink(url)
    for at in times:
        sink.send(encode_element(StreamElement("urn:s", at, at, ((f"<urn:a{at % 3}>", "<urn:p>", f'"{at}"'),))))
    sink.close()


def test_a_topic_is_a_source_of_the_room(bench: httpx.Client, kafka: Kafka) -> None:
    url = f"kafka://127.0.0.1:{kafka.port}/{kafka.topic()}"
    send(url, 0, 1000, 2500)
    made = bench.post("/live/new", data={"query": QUERY, "sources": f"{url}?from=earliest"})
    assert made.status_code == 303, made.text
    at = made.headers["location"]

    def elements(count: int) -> bool:
        return f"<dt>elements</dt><dd>{count}</dd>" in bench.get(at).text

    def page() -> str:
        return bench.get(at).text

    until(lambda: elements(3), page)
    until(lambda: "urn:a0" in page(), page)
    paused = bench.post("/live/streams/pause", data={"stream": "urn:s", "query": "q1"})
    assert paused.headers["location"] == at, paused.text
    send(url, 4500, 6500)
    time.sleep(0.5)
    assert elements(3)
    bench.post("/live/streams/resume", data={"stream": "urn:s"})
    until(lambda: elements(5), page)
    assert f"{kafka.port}/" in bench.get("/live/").text
    assert bench.post(f"{at}/end").headers["location"] == "/live/"
    assert "No query is registered." in bench.get("/live/").text


def test_a_topic_that_is_not_there_is_named(bench: httpx.Client, kafka: Kafka) -> None:
    made = bench.post("/live/new", data={"query": QUERY, "sources": f"kafka://127.0.0.1:{kafka.port}/nosuch"})
    if made.status_code == 303:
        until(lambda: "nosuch" in bench.get("/live/").text and "ended" in bench.get("/live/").text, lambda: "not named")
    else:
        assert made.status_code == 400
        assert "nosuch" in made.text
