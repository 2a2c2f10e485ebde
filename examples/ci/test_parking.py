"""Tests of continuous queries and of an engine, with the fixtures of Streamgauge's pytest plugin."""

from pathlib import Path

import pytest
from streamgauge.testing import assert_right

PARKING = Path(__file__).parents[1] / "parking"
ENGINE = Path(__file__).parents[1] / "engines" / "minimal.py"
FULL = """PREFIX : <http://park.example/>
SELECT ?lot FROM NAMED WINDOW :w ON :stream [RANGE PT10S STEP PT10S] WHERE { WINDOW :w { ?lot :is :full . } }"""


@pytest.fixture
def lots(streamgauge_stream):
    """One lot is full from the third second on, another from the eleventh."""
    stream = streamgauge_stream("http://park.example/stream", {"": "http://park.example/"})
    return stream.at("3s", ":market :is :full .").at("5s", ":center :is :open .").at("11s", ":center :is :full .")


def test_answers_that_were_noted_by_hand(lots):
    answers = [(10_000, [{"lot": "<http://park.example/market>"}]), (20_000, [{"lot": "<http://park.example/center>"}])]
    assert_right(FULL, lots, answers)


@pytest.mark.parametrize("engine", [{"engine": "live"}, {"program": ["python3", str(ENGINE)]}], ids=["live", "minimal"])
def test_an_engine(lots, streamgauge_session, engine):
    session = streamgauge_session(FULL, **engine)
    session.feed(lots).advance("20s")
    assert_right(session)
    assert len(session.answers) == 2


def test_a_channel_of_the_broker(streamgauge_broker):
    client = streamgauge_broker.client
    client.create_channel("full", "SELECT ?lot { ?lot <http://park.example/is> <http://park.example/full> }")
    client.publish("<http://park.example/market> <http://park.example/is> <http://park.example/full> .")
    assert "market" in str(client.rows("full"))
