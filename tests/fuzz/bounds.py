"""What every fuzzed input must keep: an error that users can act on, or a verdict, and an end in time."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from streamgauge.cli.main import BAD_INPUT

DEADLINE = 20.0
"""Seconds that one input may take."""


def examples(suite: int, prove: int) -> int:
    """How many inputs to draw: few in the suite, many with STREAMGAUGE_EXAMPLES=prove."""
    return prove if os.environ.get("STREAMGAUGE_EXAMPLES") == "prove" else suite


@contextmanager
def in_time() -> Iterator[None]:
    """Fail an input that hangs."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise AssertionError(f"an input took more than {DEADLINE} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, DEADLINE)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


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
            return str(error)
