"""What every fuzzed input must keep: an error that users can act on, or a verdict, and an end in time."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from streamgauge.cli.main import BAD_INPUT

DEADLINE = 20.0
"""Seconds of processor time that one input may take."""


@contextmanager
def in_time() -> Iterator[None]:
    """Fail an input that hangs."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise AssertionError(f"an input took more than {DEADLINE} s of processor time")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, DEADLINE)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def outcome(doing: Callable[[], object]) -> object:
    """What it gives, or the sentence of an expected error; anything else is raised and fails the test."""
    with in_time():
        try:
            return doing()
        except BAD_INPUT as error:
            sentence = str(error)
            assert sentence.strip(), "an error without a sentence"
            assert "Traceback" not in sentence
            return sentence
        except OSError as error:
            if not error.filename:
                raise
            return str(error)
