"""The answer of a channel as it is: large ones go out in pieces, from one snapshot for all who take it meanwhile."""

import asyncio
import gc

import pytest
from starlette.responses import StreamingResponse

from streamgauge.servers.broker.answers import PIECE, StandingAnswers
from tests.servers.broker.served import Client
from tests.servers.broker.world import broker, fact, select

MANY = [fact(f"s{n}", "a", "Student") for n in range(3 * PIECE)]


@pytest.fixture
def made():
    made = broker()
    made.create_channel("c", select("?x a :Student"))
    made.publish(MANY)
    return made


def test_a_large_answer_is_one_document_with_its_number(made):
    with Client(made) as ask:
        response = ask("GET", "/channels/c/rows")
        assert (response.headers["notification"], response.headers["content-type"]) == (
            "1",
            "application/sparql-results+json",
        )
        assert response.json()["head"] == {"vars": ["x"]}
        assert len(response.json()["results"]["bindings"]) == len(MANY)
        assert ask("HEAD", "/channels/c/rows").headers["notification"] == "1"
        made.publish([fact("another", "a", "Student")])
        response = ask("GET", "/channels/c/rows")
        assert len(response.json()["results"]["bindings"]) == len(MANY) + 1
        assert response.headers["notification"] == "2"


def test_all_who_take_an_answer_at_the_same_time_share_its_rows(made, monkeypatch):
    copies, rows = [], made.rows
    monkeypatch.setattr(made, "rows", lambda name: copies.append(name) or rows(name))
    standing = StandingAnswers(made)

    async def taken(number):
        return [await standing.response("c") for _ in range(number)]

    responses = asyncio.run(taken(5))
    assert all(isinstance(response, StreamingResponse) for response in responses)
    assert copies == ["c"]
    made.publish([fact("another", "a", "Student")])
    responses += asyncio.run(taken(2))
    assert copies == ["c", "c"]
    made.delete_channel("c")
    made.create_channel("c", select("?x a :Student"))
    responses += asyncio.run(taken(1))
    assert copies == ["c", "c", "c"]
    responses.clear()
    gc.collect()
    assert not standing._sent


def test_a_small_answer_has_a_length(made):
    made.delete(MANY[PIECE:])
    with Client(made) as ask:
        response = ask("GET", "/channels/c/rows")
    assert int(response.headers["content-length"]) == len(response.content)
    assert len(response.json()["results"]["bindings"]) == PIECE
