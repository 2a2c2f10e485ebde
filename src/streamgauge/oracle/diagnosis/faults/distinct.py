"""DISTINCT is ignored, or applied where the query does not ask for it."""

from collections.abc import Iterator

from streamgauge.model import algebra as al
from streamgauge.model.verdict import Part
from streamgauge.oracle.diagnosis.models import Case, Fault, Seen
from streamgauge.oracle.diagnosis.sides import rewritten
from streamgauge.query.traversal import every_pattern


def proposals(seen: Seen) -> Iterator[Fault]:
    """The opposite of the query: without DISTINCT, or with it."""
    form = seen.case.query.form
    if any(isinstance(pattern, al.Distinct) for pattern in every_pattern(form.pattern)):
        yield Fault(Part("DISTINCT ignored", "DISTINCT is ignored: repeated rows are sent."), _ignored)
    elif isinstance(form, al.Select):
        part = Part("DISTINCT applied", "Repeated rows are sent once.")
        yield Fault(part, lambda case: case.answering(lambda rows: tuple(dict.fromkeys(rows))))


def _ignored(case: Case) -> Case:
    def without(pattern: al.Pattern) -> al.Pattern:
        return pattern.pattern if isinstance(pattern, al.Distinct) else pattern

    return rewritten(case, without)
