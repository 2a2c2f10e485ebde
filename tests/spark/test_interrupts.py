"""Ctrl-C while the JVM is asked: the jobs are cancelled, nothing is said, and the session goes on."""

import os
import signal
import threading
import time

import pytest

from streamgauge.spark.interrupts import guard


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
    assert caplog.records == []


@pytest.mark.spark
def test_an_interrupt_between_calls_is_raised_at_once(cancelling):
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        time.sleep(30)
    assert cancelling.range(3).count() == 3
