"""The HTTP layer of all servers: tokens where others can reach a server, rates, events, metrics."""

import asyncio
import gc
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import Message

from streamgauge.servers.broker.limits import Limits
from streamgauge.servers.http.access import TokenError, check_tokens
from streamgauge.servers.http.events import Answers, End, EventError, Numbered, Signal, event, last_event
from streamgauge.servers.http.fanout import PIECE, as_events
from streamgauge.servers.http.limits import Rate
from streamgauge.servers.http.metrics import Metric, exposition
from streamgauge.servers.http.replies import BUFFERED, Reply, send_reply

TOKEN = "sixteen-letters-or-more"


@pytest.mark.parametrize("size", [1, BUFFERED])
def test_a_reply_that_is_cancelled_ends_as_cancelled(size):
    """Whoever cancels it, as for a token that was revoked, must learn that it did not end by itself."""

    async def cancelled() -> bool:
        waits = asyncio.Event()

        async def send(message: Message) -> None:
            if message["type"] == "http.response.body":
                waits.set()
                await asyncio.Event().wait()

        sending = asyncio.create_task(send_reply(Reply(200, [], b"x" * size), "GET", send))
        await waits.wait()
        sending.cancel()
        await asyncio.wait([sending])
        return sending.cancelled()

    assert asyncio.run(cancelled())


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_this_machine_needs_no_token(host):
    check_tokens(host, ())


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.7", "ex.org", ""])
def test_others_need_one(host):
    with pytest.raises(TokenError, match="give a token"):
        check_tokens(host, ())
    check_tokens(host, (TOKEN,))


def test_a_short_token_is_refused():
    with pytest.raises(TokenError, match="at least 16"):
        check_tokens("127.0.0.1", (TOKEN, "short"))


@given(st.lists(st.tuples(st.floats(0, 3), st.integers(1, 40)), max_size=40))
def test_no_more_passes_than_the_rate_allows(takes):
    """Whatever is asked for: what passed in a time is at most the rate times it, a bucket and one amount."""
    now = [0.0]
    rate = Rate(10, lambda: now[0])
    passed = 0
    for step, amount in takes:
        now[0] += step
        wait = rate.take(amount)
        assert passed <= 10 * now[0] + 10 + 40
        if wait:
            now[0] += wait + 1e-9
            assert rate.take(amount) == 0.0
        passed += amount


def test_a_signal_is_seen_once_by_each_of_many_that_wait():
    async def woken() -> list[bool]:
        signals = [Signal() for _ in range(300)]
        waiting = [asyncio.create_task(signal.wait(300)) for signal in signals]
        await asyncio.sleep(0)
        raising = Thread(target=lambda: [signal.set() for signal in signals])
        raising.start()
        result = await asyncio.gather(*waiting)
        raising.join()
        signals[0].set()
        signals[0].set()
        return [*result, await signals[0].wait(300), await signals[0].wait(0), await signals[1].wait(0)]

    assert asyncio.run(woken()) == [True] * 301 + [False] * 2


def test_events():
    assert event(b'{"a":1}', 7) == b'id: 7\ndata: {"a":1}\n\n'
    assert event(b"x", kind="over") == b"event: over\ndata: x\n\n"
    assert (last_event(None), last_event(""), last_event("12")) == (None, None, 12)
    for wrong in ("-1", "x", "1.5", "²", "1" * 5_000):
        with pytest.raises(EventError, match="Last-Event-ID"):
            last_event(wrong)


def test_metrics_escape_their_labels():
    metric = Metric("m_total", "counter", "What.", (({"stream": 'a"b\\c\nd'}, 3.0), ({}, 2.5)))
    assert exposition([metric]) == (
        '# HELP m_total What.\n# TYPE m_total counter\nm_total{stream="a\\"b\\\\c\\nd"} 3\nm_total 2.5\n'
    )


class Taken:
    """A place where lines of these sizes have come, and no more will."""

    missed = 0
    over = End("all is said")

    def __init__(self, sizes):
        self._lines = [Numbered(number, b"x" * size, size) for number, size in enumerate(sizes, 1)]

    def take(self):
        return self._lines

    def close(self):
        """Nothing is held."""


async def pieces(sizes):
    return [event async for event in as_events(Taken(sizes), lambda item: item.line, Signal())]


@pytest.mark.parametrize(
    ("sizes", "sent"), [([], 0), ([10, 20, 30], 1), ([PIECE, 1, 1], 2), ([1, PIECE, 1, PIECE], 2), ([PIECE] * 3, 3)]
)
def test_what_comes_together_is_sent_in_few_pieces(sizes, sent):
    result = asyncio.run(pieces(sizes))
    assert len(result) == sent + 1
    whole = b"".join(event(b"x" * size, number) for number, size in enumerate(sizes, 1))
    assert b"".join(result) == whole + event(b'{"over": "all is said"}', kind="over")


@pytest.mark.slow
def test_the_collector_does_not_look_at_answers_that_are_kept():
    answers = Answers(Limits())
    for number in range(10):
        answers.add(b"line", number)
    gc.collect()
    assert len(answers.subscribe(0, lambda: None).take()) == 10
    assert not any(isinstance(object_, Numbered) for object_ in gc.get_objects())
