"""Static data is ignored."""

from collections.abc import Iterator

from streamgauge.model.verdict import Part
from streamgauge.oracle.diagnosis.models import Fault, Seen


def proposals(seen: Seen) -> Iterator[Fault]:
    """The fault, for a query with static data."""
    if seen.case.query.static:
        part = Part("static data ignored", "Static data is ignored: only what the windows hold is matched.")
        yield Fault(part, lambda case: case.asking(case.query.with_static(())))
