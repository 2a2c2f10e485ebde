"""SLIDE is ignored: the window is a pure RANGE that ends at the instant (CQELS on CSRBench's query 4)."""

from collections.abc import Iterator
from functools import partial

from streamgauge.model.semantics import Borders, Scope
from streamgauge.model.verdict import Part
from streamgauge.oracle.diagnosis.models import Case, Fault, Seen

_WINDOWS = {Borders.CLOSED: "[t - {0} ms, t]", Borders.CLOSED_OPEN: "(t - {0} ms, t]"}


def proposals(seen: Seen) -> Iterator[Fault]:
    """A pure RANGE with and without the elements that are exactly as old as the window is long."""
    size = max((window.window.size for window in seen.case.query.windows if window.window.kind == "time"), default=None)
    if size is None:
        return
    for borders, window in _WINDOWS.items():
        text = window.format(f"{size:,}")
        part = Part(f"SLIDE ignored: {text}", f"SLIDE is ignored: at an instant t the window is {text}.")
        yield Fault(part, partial(Case.under, scope=Scope.RANGE, borders=borders), family="scope")
