"""Systems under test: each tells every notification that is due, one publisher or many, and fails in so many words."""

import os
import re
import signal
import time
from bisect import bisect_right
from contextlib import contextmanager, nullcontext
from functools import cache

import pytest

from streamgauge.servers.broker.broker import Broker
from streamgauge.servers.broker.contract import Publication
from streamgauge.servers.broker.strategies import begin
from streamgauge.suites.sepbm import UnusableSystemError
from streamgauge.suites.sepbm.adapters import adapters, broker_http, start
from streamgauge.suites.sepbm.adapters.sepa import read_notification
from streamgauge.suites.sepbm.runner import RunPlan, run
from tests.servers.broker.served import serving
from tests.servers.broker.world import RULES, student
from tests.suites.sepbm.endpoint import endpoint
from tests.suites.sepbm.small import Small, net, on_disk

pytestmark = pytest.mark.server

GROWING = tuple(publication for publication in Small().publications if publication.added)


@contextmanager
def served():
    broker = Broker(begin("incremental", RULES), lambda: time.time_ns() // 1_000_000, time.monotonic)
    with serving(broker) as (url, _):
        yield url


@contextmanager
def our_broker(**options):
    with served() as url:
        yield {"url": url, **options}


@contextmanager
def our_broker_as_sepa():
    with served() as url:
        yield {"update": f"{url}/update", "subscribe": f"ws{url.removeprefix('http')}/subscribe", "quiet": "2000"}


@contextmanager
def our_endpoint():
    with endpoint() as url:
        yield {"url": url}


SYSTEMS = {
    "incremental": ("broker_inprocess", lambda: nullcontext({})),
    "reevaluate": ("broker_inprocess", lambda: nullcontext({"strategy": "reevaluate"})),
    "columns": ("columns", lambda: nullcontext({})),
    "events": ("broker_http", our_broker),
    "websocket": ("broker_http", lambda: our_broker(transport="websocket")),
    "polled": ("polled", lambda: nullcontext({})),
    "polled each 50 ms": ("polled", lambda: nullcontext({"period": "50"})),
    "endpoint": ("polled", our_endpoint),
    "sepa": ("sepa", our_broker_as_sepa),
    "rsp": ("rsp", lambda: nullcontext({})),
}
SILENT = ("polled", "sepa")
"""Those that say nothing of causes."""

EACH = pytest.mark.parametrize("case", SYSTEMS)


def configuration(case):
    """What a system can take: streams only grow."""
    return Small(publications=GROWING) if case == "rsp" else Small()


@cache
def due(growing):
    """What each channel is due, in order, and by which publication."""
    given = Small(publications=GROWING) if growing else Small()
    result, by = {}, {}
    for report in given.due():
        result.setdefault(report.channel, []).append((set(report.added), set(report.removed)))
        by.setdefault(report.channel, []).append(report.publication)
    return result, by


def told(recording):
    """What each channel was told, in order."""
    results = {}
    for message in recording.heard:
        results.setdefault(message.channel, []).append((set(message.added), set(message.removed)))
    return results


def test_every_adapter_is_tested():
    assert {name for name, _ in SYSTEMS.values()} == set(adapters())


@EACH
def test_all_that_is_due_is_told(case):
    name, options = SYSTEMS[case]
    with options() as given:
        recording = run(configuration(case), name, given, RunPlan(seconds=1500, rate=100.0 if case == "sepa" else None))
    assert recording.failure is None
    result, by = due(case == "rsp")
    assert told(recording) == result
    numbers = {entry.known_as: entry.number for entry in recording.published}
    for channel, publications in by.items():
        causes = [entry.causes for entry in recording.heard if entry.channel == channel]
        assert [tuple(map(numbers.get, cause)) for cause in causes] == [
            () if name in SILENT else (number,) for number in publications
        ]
    if case != "sepa":
        called = [entry.called for entry in recording.published]
        places = [entry.number for entry in recording.published]
        for channel, publications in by.items():
            received = [entry.received for entry in recording.heard if entry.channel == channel]
            assert [places[bisect_right(called, at) - 1] for at in received] == publications


@EACH
def test_who_leaves_and_what_ends_is_told_no_more(case):
    name, options = SYSTEMS[case]
    channels = [channel for channel in Small().channels if channel.name in ("named", "students")]
    heard = []
    with options() as given:
        system = start(name, given)
        try:
            system.start(Small())
            for channel in channels:
                system.subscribe(channel, heard.append)
            system.settle()
            told = []
            for leaving in (channels[:1], channels[1:], ()):
                system.feed(Publication(len(told) + 1, student(len(told)), ()))
                system.settle()
                told.append({message.channel for message in heard})
                heard.clear()
                for channel in leaving:
                    system.unsubscribe(channel)
        finally:
            system.close()
    assert told == [{"named", "students"}, {"students"}, set()]


@pytest.mark.parametrize("case", [case for case in SYSTEMS if case not in ("incremental", "websocket")])
def test_ten_publishers_at_a_rate_leave_what_one_does(case):
    name, options = SYSTEMS[case]
    small = Small(publications=GROWING)
    with options() as given:
        recording = run(small, name, given, RunPlan(publishers=10, rate=200.0, seconds=1500))
    assert recording.failure is None
    assert net(recording.heard) == net(small.due())
    assert [entry.called for entry in recording.published] == [
        recording.started + place * 5_000_000 for place in range(len(GROWING))
    ]


@pytest.mark.parametrize(
    ("name", "strategy"),
    [("broker_inprocess", "stringrs"), ("broker_inprocess", "graphss"), ("broker_http", "graphss")],
)
def test_what_heuristics_put_off_is_told_in_the_end(tmp_path, name, strategy):
    small = on_disk(tmp_path, Small())
    recording = run(small, name, {"strategy": strategy}, RunPlan(seconds=1500))
    assert recording.failure is None
    assert net(recording.heard) == net(small.due())
    assert recording.evaluator == "definition"


def test_a_broker_of_its_own_with_a_journal(tmp_path):
    small = on_disk(tmp_path, Small())
    options = {"journal": str(tmp_path / "journal"), "transport": "websocket"}
    recording = run(small, "broker_http", options, RunPlan(seconds=1500, subscribers=2))
    assert recording.failure is None
    assert told(recording) == due(growing=False)[0]
    assert len(recording.beside) == len(recording.heard)
    assert recording.samples
    again = run(small, "broker_http", options, RunPlan(seconds=1500))
    assert "broker.db: a journal already exists" in again.failure


def test_a_journal_in_process(tmp_path):
    recording = run(Small(), "broker_inprocess", {"journal": str(tmp_path)}, RunPlan())
    assert told(recording) == due(growing=False)[0]
    again = run(Small(), "broker_inprocess", {"journal": str(tmp_path)}, RunPlan())
    assert "broker.db: a journal already exists" in again.failure


def test_a_broker_that_dies_is_a_failure(tmp_path, monkeypatch):
    services = []

    class Watched(broker_http.ServerProcess):
        def __init__(self, *words):
            super().__init__(*words)
            services.append(self.pid)

    def progress(doing, done, _count):
        if doing == "sequence" and done:
            os.kill(services[0], signal.SIGKILL)

    monkeypatch.setattr(broker_http, "ServerProcess", Watched)
    small = on_disk(tmp_path, Small())
    recording = run(small, "broker_http", {}, RunPlan(rate=5.0, seconds=1500), progress=progress)
    assert re.match(r"sequence: http://127\.0\.0\.1:\d+[^;]*: is a broker there\?", recording.failure)
    assert 0 < len(recording.published) < len(small.publications)


def test_a_broker_with_channels_of_others_is_refused():
    with our_broker() as options:
        with broker_http.Client(options["url"]) as client:
            client.create_channel("theirs", "SELECT * { ?s ?p ?o }")
        recording = run(Small(), "broker_http", options, RunPlan(seconds=1500))
    assert "already has channels" in recording.failure


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("broker_http", {"url": "http://127.0.0.1:9"}, "is a broker there"),
        ("sepa", {"update": "http://127.0.0.1:9/", "subscribe": "ws://127.0.0.1:9/"}, "run one: SEPA is at"),
        (
            "sepa",
            {"update": "http://127.0.0.1:9/", "subscribe": "ws://127.0.0.1:9/", "base": "loaded"},
            "the subscription of channel",
        ),
        ("polled", {"url": "http://127.0.0.1:9/"}, "is a SPARQL endpoint there"),
        ("rsp", {}, "a stream only grows"),
        ("broker_http", {"strategy": "magic"}, "there is no strategy magic"),
    ],
)
def test_what_is_not_there_or_not_done_is_a_failure(tmp_path, name, options, words):
    recording = run(on_disk(tmp_path, Small()), name, options, RunPlan(seconds=1500))
    assert words in recording.failure


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("broker_http", {"url": "http://x", "journal": "j"}, "journal is set at the start of a broker"),
        ("broker_http", {"token": "t"}, "token needs url"),
        ("broker_http", {"transport": "pigeon"}, "unknown transport pigeon: there are events and websocket"),
        ("sepa", {"update": "http://x"}, "say subscribe, the URL of its subscriptions"),
        ("sepa", {"update": "u", "subscribe": "s", "quiet": "soon"}, "quiet is 'soon': expected milliseconds"),
        ("sepa", {"update": "u", "subscribe": "s", "base": "b"}, "base is 'b': expected publish or loaded"),
        ("polled", {"period": "0"}, "period is '0': expected milliseconds"),
        ("polled", {"token": "t"}, "token needs url"),
        ("rsp", {"engine": "nobody"}, "unknown engine 'nobody'"),
        ("rsp", {"semantics": "nonsense"}, "no semantics named 'nonsense'"),
    ],
)
def test_options_that_do_not_fit_are_named(name, options, words):
    with pytest.raises(UnusableSystemError, match=words):
        start(name, options)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("no JSON", "no notification of SEPA's: 'no JSON'"),
        ("[]", "no notification"),
        ('{"status_code": 400, "error": "x", "error_description": "the query is odd"}', "the query is odd"),
        ('{"notification": {"addedResults": 7, "removedResults": {}}}', "no notification"),
        (
            '{"notification": {"addedResults": {"head": {"vars": ["z"]}, "results": {"bindings": []}}, '
            '"removedResults": {}}}',
            "no notification",
        ),
    ],
)
def test_a_sepa_broker_that_says_something_else(text, words):
    with pytest.raises(UnusableSystemError, match=words):
        read_notification(text, ("x", "y"))


def test_columns_of_a_sepa_broker_may_come_in_any_order():
    message = (
        '{"notification": {"removedResults": {}, "addedResults": {"head": {"vars": ["y", "x"]}, "results": '
        '{"bindings": [{"x": {"type": "uri", "value": "urn:t:a"}, "y": {"type": "literal", "value": "b"}}, {}]}}}}'
    )
    assert read_notification(message, ("x", "y", "z")) == ((("<urn:t:a>", '"b"', None), (None, None, None)), ())
