"""The conformance suite as a test module, for ``pytest --pyargs streamgauge.testing.conformance`` (docs/ci.md).

``--streamgauge-engine NAME`` names the engine, or ``--streamgauge-program 'node mine.js'`` the program.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from streamgauge.model.controls import visible

if TYPE_CHECKING:
    from streamgauge.suites.conformance.cases import ConformanceTask
    from streamgauge.testing.tasks import ConformanceSession


def test_conformance(streamgauge_conformance: "ConformanceSession", streamgauge_task: "ConformanceTask") -> None:
    """The engine answers a case as defined, refuses it by name, or deviates as listed."""
    # pytest leaves frames with this name out of its tracebacks.
    __tracebackhide__ = True
    streamgauge_conformance.check(streamgauge_task)


def test_list_of_deviations(
    streamgauge_conformance: "ConformanceSession", streamgauge_every_task: "Sequence[ConformanceTask]"
) -> None:
    """Every listed deviation has a reason, and every listed task is one of the suite."""
    complaints = streamgauge_conformance.complaints(streamgauge_every_task)
    if complaints:
        raise AssertionError(visible("\n".join(complaints)))
