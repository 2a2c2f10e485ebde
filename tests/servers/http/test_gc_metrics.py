"""Pauses for the collector of garbage are counted by generation, once each."""

import gc

import pytest

from streamgauge.servers.http.metrics import Pauses, exposition


@pytest.fixture
def automatic():
    """No collection but those that are asked for."""
    gc.disable()
    yield
    gc.enable()


def test_frozen_objects_are_counted_once_a_minute(monkeypatch):
    now, counted = [0.0], []
    monkeypatch.setattr(gc, "get_freeze_count", lambda: counted.append(now[0]) or 7 * len(counted))
    pauses = Pauses(lambda: now[0])
    messages = []
    for item in (0.0, 59.9, 60.0, 61.0):
        now[0] = item
        messages += [line for line in exposition(pauses.metrics()).splitlines() if "frozen_objects " in line[:30]]
    assert counted == [0.0, 60.0]
    assert messages == [f"streamgauge_gc_frozen_objects {count}" for count in (7, 7, 14, 14)]


@pytest.mark.slow
@pytest.mark.usefixtures("automatic")
def test_each_collection_counts_once_and_as_long_as_it_took():
    now = iter(range(100))
    pauses = Pauses(lambda: next(now) * next(now))  # 0, 6, 20, 42, ...: the pauses are 6, 22, ...
    pauses.begin()
    pauses.begin()
    gc.collect(0)
    gc.collect(2)
    pauses.end()
    gc.collect(2)
    text = exposition(pauses.metrics())
    assert "# TYPE streamgauge_gc_pause_seconds summary" in text
    for line in (
        'seconds_sum{generation="0"} 6',
        'seconds_count{generation="0"} 1',
        'seconds_sum{generation="1"} 0',
        'seconds_sum{generation="2"} 22',
        'seconds_count{generation="2"} 1',
        'seconds_longest{generation="2"} 22',
    ):
        assert f"streamgauge_gc_pause_{line}\n" in text
