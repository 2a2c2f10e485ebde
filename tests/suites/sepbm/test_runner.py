"""The runner: what each system is asked, in which order, when, and what becomes of those that fail."""

import threading
import time
from collections import Counter
from itertools import pairwise

import pytest

from streamgauge.servers.broker.contract import Publication
from streamgauge.suites.sepbm import ReceivedNotification, SepbmChannel, UnusableSystemError, adapters, runner
from streamgauge.suites.sepbm.analysis import SLOW
from streamgauge.suites.sepbm.runner import RunnerClock, RunPlan, run
from tests.suites.sepbm.small import NAMES, Small, net


def told(recording):
    """What each publication's number led to, by channel."""
    numbers = {message.known_as: message.number for message in recording.published}
    results = {}
    for message in recording.heard:
        (cause,) = message.causes
        rows = results.setdefault((message.channel, numbers[cause]), (set(), set()))
        rows[0].update(message.added)
        rows[1].update(message.removed)
    return results


def due(configuration):
    return {
        (report.channel, report.publication): (set(report.added), set(report.removed)) for report in configuration.due()
    }


def test_every_notification_by_its_publication():
    small = Small()
    recording = run(small, "broker_inprocess", {}, RunPlan())
    assert recording.failure is None
    assert recording.channels == NAMES
    assert told(recording) == due(small)
    assert [entry.number for entry in recording.published] == [publication.number for publication in small.publications]
    calls = [(entry.called, entry.acknowledged) for entry in recording.published]
    assert all(called < back for called, back in calls)
    assert all(back <= called for (_, back), (called, _) in pairwise(calls))
    assert recording.started <= calls[0][0]
    for publication in recording.heard:
        assert calls[0][0] < publication.made <= publication.received < calls[-1][1]
    assert recording.samples


def test_some_channels_and_the_first_publications():
    small = Small()
    recording = run(small, "broker_inprocess", {}, RunPlan(channels=("one",), first=4))
    assert recording.channels == ("one",)
    assert len(recording.published) == 4
    wanted = {key: rows for key, rows in due(small).items() if key[0] == "one" and key[1] <= 4}
    assert told(recording) == wanted


def test_the_ten_slow_channels_have_a_name():
    channels = tuple(SepbmChannel(f"q{number:02}", "SELECT * { ?s ?p ?o }") for number in range(1, 21))
    chosen = RunPlan(channels=("slow", "q01")).chosen(Small(channels=channels))
    assert [entry.name for entry in chosen] == ["q01", *SLOW]


def test_subscribers_beside_the_first_are_counted():
    recording = run(Small(), "broker_inprocess", {}, RunPlan(subscribers=3))
    heard = Counter(
        (message.channel, message.causes, len(message.added) + len(message.removed)) for message in recording.heard
    )
    for subscriber in (1, 2):
        mine = [message for message in recording.beside if message.subscriber == subscriber]
        assert Counter((message.channel, message.causes, message.rows) for message in mine) == heard
    assert recording.subscribers == 3


@pytest.mark.parametrize("publishers", [3, 10, 100])
def test_publishers_at_once_leave_the_same_answers(publishers):
    small = Small(publications=tuple(publication for publication in Small().publications if publication.added))
    alone = run(small, "broker_inprocess", {}, RunPlan())
    recording = run(small, "broker_inprocess", {}, RunPlan(publishers=publishers))
    assert recording.failure is None
    assert net(recording.heard) == net(alone.heard)
    assert sorted(entry.known_as for entry in recording.published) == list(range(1, len(small.publications) + 1))
    for first in range(min(publishers, len(recording.published))):
        share = [entry.known_as for entry in recording.published[first::publishers]]
        assert share == sorted(share)


class Clock:
    """Time that goes on by 1 us a look, and by what is slept."""

    def __init__(self):
        self.now, self.slept = 0, []

    def __call__(self):
        self.now += 1000
        return self.now

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += int(seconds * 1e9)


def test_at_a_rate_times_are_planned():
    clock = Clock()
    small = Small()
    recording = run(small, "broker_inprocess", {}, RunPlan(rate=100.0), RunnerClock(clock, clock.sleep))
    planned = [recording.started + place * 10_000_000 for place in range(len(small.publications))]
    assert [publication.called for publication in recording.published] == planned
    assert all(publication.acknowledged > publication.called for publication in recording.published)
    assert sum(clock.slept) > 0.9 * 0.01 * (len(planned) - 1)


def test_who_cannot_keep_the_rate_is_measured_from_the_plan():
    recording = run(Small(), "broker_inprocess", {"strategy": "reevaluate"}, RunPlan(rate=1e6, publishers=2))
    planned = [recording.started + place * 1000 for place in range(len(recording.published))]
    assert [publication.called for publication in recording.published] == planned
    assert net(recording.heard) == net(run(Small(), "broker_inprocess", {}, RunPlan()).heard)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"publishers": 0}, "publishers is 0"),
        ({"subscribers": 0}, "subscribers is 0"),
        ({"rate": 0.0}, "rate is 0"),
        ({"seconds": 0.0}, "time limit is 0"),
    ],
)
def test_plans_that_cannot_be(fields, words):
    with pytest.raises(ValueError, match=words):
        RunPlan(**fields)


def test_what_is_not_there_is_named():
    with pytest.raises(ValueError, match=r"no channel q99 in small: there are courses, either"):
        run(Small(), "broker_inprocess", {}, RunPlan(channels=("q99",)))
    with pytest.raises(UnusableSystemError, match="unknown system rumour: there are broker_"):
        run(Small(), "rumour", {}, RunPlan())
    with pytest.raises(UnusableSystemError, match="unknown option speed: its options are strategy, journal"):
        run(Small(), "broker_inprocess", {"speed": "high"}, RunPlan())
    with pytest.raises(UnusableSystemError, match="no strategy magic: there are graphss, incremental"):
        run(Small(), "broker_inprocess", {"strategy": "magic"}, RunPlan())
    both = Publication(1, *(publication.added for publication in Small().publications[:2]))
    with pytest.raises(ValueError, match="publication 1 publishes and deletes"):
        run(Small(publications=(both,)), "broker_inprocess", {}, RunPlan())


class Odd:
    """A system that does a thing of its own in one operation, and nothing in the others."""

    processes = ()
    evaluator = None

    def __init__(self, **deeds):
        self.deeds, self.asked, self.closed = deeds, [], False
        self.hear = {}

    def _do(self, name):
        self.asked.append(name)
        if name in self.deeds:
            return self.deeds[name]()
        return None

    def start(self, _configuration):
        self._do("start")

    def subscribe(self, channel, hear):
        self.hear[channel.name] = hear
        self._do("subscribe")

    def feed(self, publication):
        return self._do("delete" if publication.removed else "publish")

    def settle(self):
        self._do("settle")

    def advance(self, _time):
        self._do("advance")

    def close(self):
        self.closed = True
        self._do("close")


def fail(sentence):
    def deed():
        raise UnusableSystemError(sentence)

    return deed


def wrong():
    raise KeyError("what")


def odd(monkeypatch, **deeds):
    system = Odd(**deeds)
    monkeypatch.setattr(runner, "start", lambda *_: system)
    return system


@pytest.mark.parametrize("operation", ["start", "subscribe", "publish", "settle", "advance", "close"])
def test_a_system_that_fails_is_told_of(monkeypatch, operation):
    system = odd(monkeypatch, **{operation: fail("the engine is out of oil")})
    recording = run(Small(), "odd", {}, RunPlan())
    assert recording.failure.endswith("the engine is out of oil")
    assert system.closed
    acknowledged = {"advance": len(Small().publications), "close": len(Small().publications)}
    assert len(recording.published) == acknowledged.get(operation, 0)


def test_an_error_that_nobody_expected_has_its_kind(monkeypatch):
    odd(monkeypatch, publish=wrong)
    assert run(Small(), "odd", {}, RunPlan(publishers=4)).failure == "sequence: KeyError: 'what'"


@pytest.mark.parametrize("operation", ["start", "subscribe", "publish", "delete", "settle", "advance"])
@pytest.mark.parametrize("publishers", [1, 3])
def test_a_system_that_hangs_is_left(monkeypatch, operation, publishers):
    released = threading.Event()
    system = odd(monkeypatch, **{operation: lambda: released.wait(300)})
    before = time.monotonic()
    recording = run(Small(), "odd", {}, RunPlan(seconds=0.3, publishers=publishers))
    assert time.monotonic() - before < 200
    assert "at the time limit of 0.3 s" in recording.failure
    assert system.closed
    released.set()


def test_a_system_that_does_not_end_is_left(monkeypatch):
    released = threading.Event()
    odd(monkeypatch, close=lambda: released.wait(300))
    assert run(Small(), "odd", {}, RunPlan(closing=0.1)).failure == "it was not closed within 0.1 s"
    released.set()


def test_what_a_liar_says_is_recorded_as_it_is(monkeypatch):
    def lie():
        system.hear["one"](ReceivedNotification("one", (77,), (("<urn:t:nobody>",),), (), 5))
        return 1

    system = odd(monkeypatch, publish=lie)
    recording = run(Small(), "odd", {}, RunPlan(first=1))
    assert recording.heard == (ReceivedNotification("one", (77,), (("<urn:t:nobody>",),), (), 5),)


@pytest.mark.parametrize(
    ("heard", "words"),
    [
        (ReceivedNotification("two", (1,), (("<urn:t:a>",),), (), 5), "first for two: there is no such channel"),
        (
            ReceivedNotification("one", (1,), (("<urn:t:a>", None),), (), 5),
            "first for one: its rows are not 1 wide",
        ),
    ],
)
def test_a_notification_that_fits_no_channel_is_a_failure(monkeypatch, heard, words):
    system = odd(monkeypatch, publish=lambda: system.hear["one"](heard))
    recording = run(Small(), "odd", {}, RunPlan())
    sent = len([p for p in Small().publications if p.added])
    assert recording.failure == f"it sent {sent} notifications that fit no channel, the {words}"
    assert recording.heard == ()


def test_who_interrupts_leaves_nothing_running(monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    system = odd(monkeypatch, publish=lambda: time.sleep(0.2))
    with pytest.raises(KeyboardInterrupt):
        run(Small(), "odd", {}, RunPlan(), progress=interrupt)
    assert system.closed
    asked = len(system.asked)
    time.sleep(0.5)
    assert len(system.asked) <= asked + 1


def test_progress_is_told(monkeypatch):
    messages = []
    odd(monkeypatch, settle=lambda: time.sleep(0.05))
    run(Small(), "odd", {}, RunPlan(), progress=lambda *what: messages.append(what))
    count = len(Small().publications)
    assert {what[0] for what in messages} <= {"load", "channels", "sequence", "finish"}
    assert messages
    assert all(0 <= done <= total == count for _, done, total in messages)


def test_adapters_say_what_they_are():
    for name, about in adapters.adapters().items():
        assert about, name
        assert all(adapters.options_of(name).values()), name
