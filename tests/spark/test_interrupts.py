"""Ctrl-C while the JVM is asked: the jobs are cancelled, nothing is said, and the session goes on."""

import os
import signal
import threading
import time

import pytest

from streamgauge.spark.interrupts import guard
from streamgauge.spark.session import session


@pytest.fixture
def cancelling(spark):
    before = signal.getsignal(signal.SIGINT)
    guard(spark.sparkContext)
    yield spark
    signal.signal(signal.SIGINT, before)


@pytest.mark.spark
def test_an_interrupt_cancels_the_job_and_leaves_the_session(cancelling, caplog):
    for _ in range(3):
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            cancelling.range(10**15).selectExpr("sum(id % 7)").collect()
        assert cancelling.range(10).count() == 10
    tracker, until = cancelling.sparkContext.statusTracker(), time.monotonic() + 60
    while tracker.getActiveJobsIds() and time.monotonic() < until:
        time.sleep(0.1)
    assert not list(tracker.getActiveJobsIds())
    assert [record for record in caplog.records if not record.name.startswith("streamgauge.sources")] == []


@pytest.mark.spark
def test_an_interrupt_between_calls_is_raised_at_once(cancelling):
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        time.sleep(30)
    assert cancelling.range(3).count() == 3


@pytest.mark.spark
@pytest.mark.usefixtures("cancelling")
def test_a_handler_that_came_after_the_context_stays():
    def own(_number, _frame):
        """Another handler."""

    signal.signal(signal.SIGINT, own)
    session("local[2]", memory="2g", shuffle=2, app="streamgauge-tests")  # as the one that is there
    assert signal.getsignal(signal.SIGINT) is own
