"""The result manager: bounded, for a lifetime, one question at a time for a key."""

import asyncio

import pytest

from streamgauge.servers.fragments.client import LinkedDataError
from streamgauge.servers.fragments.live_queries.streamer import StaticAnswer, StaticAnswers


class Asked:
    """Answers each key with itself, for ten seconds; says what was asked."""

    def __init__(self):
        self.now, self.keys, self.failing = 0, [], False

    async def find(self, key):
        self.keys.append(key)
        await asyncio.sleep(0)
        if self.failing:
            raise LinkedDataError("http://a.test/", "is away")
        return StaticAnswer({key: 1}, self.now + 10_000)

    def results(self, most=10):
        return StaticAnswers(self.find, lambda: self.now, most)


def test_one_question_for_those_that_ask_at_once():
    asked = Asked()
    results = asked.results()

    async def ask():
        return await asyncio.gather(*(results.of(("a",)) for _ in range(5)))

    assert asyncio.run(ask()) == [{("a",): 1}] * 5
    assert asked.keys == [("a",)]


def test_an_answer_is_used_for_its_lifetime():
    asked = Asked()
    results = asked.results()
    for now in (0, 9_999, 10_000, 10_001):
        asked.now = now
        asyncio.run(results.of(("a",)))
    assert asked.keys == [("a",), ("a",)]
    assert (results.hits, results.misses) == (2, 2)


def test_what_was_least_lately_used_goes_first():
    asked = Asked()
    results = asked.results(most=2)
    for key in "abacab":
        asyncio.run(results.of((key,)))
    assert len(results) == 2
    assert "".join(key for (key,) in asked.keys) == "abcb"


def test_a_failure_is_not_kept():
    asked = Asked()
    results = asked.results()
    asked.failing = True
    with pytest.raises(LinkedDataError):
        asyncio.run(results.of(("a",)))
    asked.failing = False
    assert asyncio.run(results.of(("a",))) == {("a",): 1}
