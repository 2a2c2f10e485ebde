"""Ctrl-C within a call of the JVM: the jobs are cancelled, nothing is said, and the session goes on."""

import logging
import os
import signal
import threading
import time

import pytest

from streamgauge.spark.session import _cancel_when_interrupted, _is_no_interrupt


@pytest.fixture
def cancelling(spark):
    before = signal.getsignal(signal.SIGINT)
    _cancel_when_interrupted(spark.sparkContext)
    yield spark
    signal.signal(signal.SIGINT, before)


@pytest.mark.spark
def test_an_interrupt_cancels_the_job_and_leaves_the_session(cancelling):
    threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        cancelling.range(10**15).selectExpr("sum(id * id % 7)").collect()
    assert cancelling.range(10).count() == 10
    tracker, until = cancelling.sparkContext.statusTracker(), time.monotonic() + 60
    while tracker.getActiveJobsIds() and time.monotonic() < until:
        time.sleep(0.1)
    assert not list(tracker.getActiveJobsIds())


def test_records_of_interrupted_calls_are_dropped():
    def record(message):
        return logging.LogRecord("py4j", logging.ERROR, "", 0, message, (), None)

    assert not _is_no_interrupt(record("KeyboardInterrupt while sending command."))
    assert not _is_no_interrupt(record("Exception occurred while shutting down connection"))
    assert _is_no_interrupt(record("Exception while sending command."))
