"""Channels that come and go leave nothing: what the collector does not look at again are large answers alone."""

import gc

import pytest

from streamgauge.cli import broker as command
from streamgauge.reasoning import Rules
from streamgauge.servers.broker.limits import Limits
from streamgauge.servers.broker.strategies import begin
from tests.servers.broker.world import fact, select

pytestmark = pytest.mark.slow


@pytest.fixture
def made():
    broker = command._begun(begin("incremental", Rules(())), None, Limits(), (), Rules(()))
    yield broker
    broker.close()
    gc.unfreeze()


def churn(made, times):
    for _ in range(times):
        made.create_channel("c", select("?x a :Student FILTER (?x != :nobody)"))  # one query: it is compiled once
        made.delete_channel("c")


def test_small_channels_that_come_and_go_leave_nothing(made):
    made.publish([fact(f"s{n}", "a", "Student") for n in range(50)])
    churn(made, 20)
    gc.collect()
    frozen, objects = gc.get_freeze_count(), len(gc.get_objects())
    churn(made, 100)
    gc.collect()
    assert gc.get_freeze_count() <= frozen  # what tests before this one froze may be freed
    assert len(gc.get_objects()) < objects + 500


def test_a_large_answer_is_not_looked_at_again(made, monkeypatch):
    monkeypatch.setattr(command, "FROZEN_ROWS", 200)
    made.publish([fact(f"s{n}", "a", "Student") for n in range(200)])
    frozen = gc.get_freeze_count()
    made.create_channel("c", select("?x a :Student"))
    assert gc.get_freeze_count() > frozen + 50
