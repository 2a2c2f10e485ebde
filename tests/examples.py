"""How many cases a drawn test draws: few in the suite, many under ``make prove`` (``STREAMGAUGE_EXAMPLES=prove``)."""

from collections.abc import Callable
from typing import Any, TypeVar

import pytest
from hypothesis import settings

Test = TypeVar("Test", bound=Callable[..., Any])


def proving() -> bool:
    """Whether this run is a proof (``STREAMGAUGE_EXAMPLES=prove``)."""
    return settings.get_current_profile_name() == "prove"


def examples(suite: int, prove: int, **more: Any) -> Callable[[Test], Test]:
    """``@settings(max_examples=...)`` by the profile of this run, and the mark ``drawn``; ``more`` goes to settings."""
    bounded = settings(max_examples=prove if proving() else suite, **more)

    def decorate(test: Test) -> Test:
        drawn: Test = pytest.mark.drawn(bounded(test))
        return drawn

    return decorate
