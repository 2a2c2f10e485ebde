"""Nothing is reported before something matches; from then on every window is, empty or not (Esper's output clock)."""

from collections.abc import Iterator
from dataclasses import replace

from streamgauge.model.semantics import Report
from streamgauge.model.verdict import Part
from streamgauge.oracle.diagnosis.models import Case, Fault, Seen


def proposals(_seen: Seen) -> Iterator[Fault]:
    """Reports from the first match on."""
    sentence = "Nothing is reported before the first match; from then on every window is, with content or without."
    yield Fault(Part("reports start at the first match", sentence), _change, family="gate")


def _change(case: Case) -> Case:
    # Empty windows are reported too, once the gate is open.
    report = case.semantics.report - {Report.NON_EMPTY}
    return replace(case.under(report=report, notify_empty=True), gate=any)
