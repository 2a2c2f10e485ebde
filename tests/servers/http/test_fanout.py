"""Fan-outs: each member gets everything once and in order, whatever comes when and whoever takes no more."""

import asyncio
from dataclasses import dataclass
from random import Random

import pytest

from streamgauge.servers.http import fanout
from streamgauge.servers.http.events import Answers, End, Signal
from streamgauge.servers.http.fanout import Fanouts, Member, chunk, frames


@dataclass
class Limits:
    kept: int = 10_000
    kept_bytes: int = 2**24
    lag: int = 5_000


class Place:
    """A place in answers whose lines are their numbers."""

    def __init__(self, answers, wake):
        self.inner = answers.subscribe(None, wake)
        self.resume, self.pause, self.close = self.inner.resume, self.inner.pause, self.inner.close

    @property
    def place(self):
        return self.inner.place

    @property
    def over(self):
        return self.inner.over

    def take(self):
        return self.inner.take()

    def before(self, sent):
        return sent.number - 1


class Wire:
    """A connection that takes no more now and then."""

    def __init__(self, random, share):
        self.random, self.share, self.got = random, share, []

    def write(self, data):
        if self.random.random() < self.share:
            return False
        self.got += data.split()
        return True


async def follow(answers, fans, wire, alone):
    """A subscriber as a connection's coroutine is one, until no more will come."""
    signal = Signal()
    place = Place(answers, signal.set)
    within = lambda: fans.within("c", lambda wake: Place(answers, wake), encode, lambda each: each.size)  # noqa: E731
    member = Member(place, wire, signal, within)
    try:
        while True:
            over = place.over
            for each in place.take():
                wire.got.append(each.line)
                alone.append(each.line)
                await asyncio.sleep(0)
            if over:
                return
            member.join()
            await signal.wait(300)
            member.leave()
    finally:
        member.leave()
        place.close()


def encode(sent):
    return b"".join(b"%s " % each.line for each in sent)


@pytest.mark.parametrize(("share", "members", "turn"), [(0, 5, 128), (0, 40, 7), (0.3, 40, 7), (1, 9, 7)])
@pytest.mark.parametrize("size", [10, 40_000])
def test_each_gets_all_once_and_in_order(share, members, turn, size, monkeypatch):
    monkeypatch.setattr(fanout, "TURN", turn)
    random, answers, fans, alone = Random(members), Answers(Limits()), Fanouts(), []
    wires = [Wire(random, share) for _ in range(members)]
    sent = []

    async def run():
        tasks = [asyncio.create_task(follow(answers, fans, wire, alone)) for wire in wires]
        await asyncio.sleep(0.01)
        for n in range(60):
            line = b"%d" % n
            sent.append(line)
            answers.add(line, size)
            for _ in range(random.choice((0, 0, 1, 3))):
                await asyncio.sleep(0)
        await asyncio.sleep(0.05)
        late = Wire(random, share)
        tasks.append(asyncio.create_task(follow(answers, fans, late, alone)))
        await asyncio.sleep(0.01)
        answers.add(b"last", size)
        await asyncio.sleep(0.05)
        answers.end(End("it is over"))
        async with asyncio.timeout(4):
            await asyncio.gather(*tasks)
        assert late.got == [b"last"]

    asyncio.run(run())
    for wire in wires:
        assert wire.got == [*sent, b"last"]
    assert bool(alone) == bool(share)
    assert not fans._fans
    assert answers.subscribers == 0


def test_a_member_that_goes_in_the_middle_has_its_place(monkeypatch):
    monkeypatch.setattr(fanout, "TURN", 1)
    answers, fans, wires = Answers(Limits()), Fanouts(), [Wire(Random(0), 0) for _ in range(3)]

    async def run():
        within = lambda: fans.within("c", lambda wake: Place(answers, wake), encode, lambda each: each.size)  # noqa: E731
        members = [Member(Place(answers, lambda: None), wire, Signal(), within) for wire in wires]
        assert all(member.join() for member in members)
        answers.add(b"1", 10)
        while not any(wire.got for wire in wires):
            await asyncio.sleep(0)
        for member, wire in zip(members, wires, strict=True):
            member.leave()
            assert [one.line for one in member.place.take()] == ([] if wire.got else [b"1"])
            member.place.close()

    asyncio.run(run())
    assert sum(len(wire.got) for wire in wires) == 1
    assert answers.subscribers == 0


@pytest.mark.parametrize("size", [0, 1, 125, 126, 65_535, 65_536])
def test_frames_are_those_of_a_library(size):
    from websockets.frames import Frame, Opcode

    text = b"x" * size
    assert frames([text, b"y"]) == b"".join(Frame(Opcode.TEXT, each).serialize(mask=False) for each in (text, b"y"))


def test_a_chunk_says_its_length():
    assert chunk(b"x" * 26) == b"1a\r\n" + b"x" * 26 + b"\r\n"


@pytest.mark.parametrize(("why", "kept"), [("short", "short"), ("ä" * 100, "ä" * 61), ("a" * 200, "a" * 123)])
def test_the_reason_of_a_close_frame_fits(why, kept):
    assert fanout.close_reason(why) == kept
