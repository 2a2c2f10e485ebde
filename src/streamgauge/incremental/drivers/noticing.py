"""Whether a content has changed between two looks: exactly, or as far as an answer can show it."""

from collections.abc import Sequence
from typing import Protocol

from streamgauge.model import algebra as al
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import R2S, Changes, Report, Semantics
from streamgauge.model.terms import Triple
from streamgauge.query.rebuild import every_pattern
from streamgauge.query.stamps import uses_timestamp


class Noticing(Protocol):
    """What is told of a content's moves and asked at its looks."""

    @property
    def none(self) -> bool:
        """Whether nothing that counts has happened since the last look."""
        ...

    def came(self, triples: Sequence[Triple]) -> None:
        """Triples entered."""
        ...

    def went(self, triples: Sequence[Triple]) -> None:
        """Triples left."""
        ...

    def settle(self, held: object) -> bool:
        """Whether the content has changed since the last look; ``held`` is true when it holds any triple."""
        ...


class Differences:
    """How the set of triples differs from when it was last looked at; what comes and goes in between is no change."""

    def __init__(self, counted: Changes) -> None:
        self._evictions = counted is Changes.BOTH
        self._copies: dict[Triple, int] = {}
        self._fresh: set[Triple] = set()
        self._lost: set[Triple] = set()

    @property
    def none(self) -> bool:
        """Whether the set is as it was."""
        return not self._fresh and not self._lost

    def came(self, triples: Sequence[Triple]) -> None:
        """Count triples in."""
        copies, fresh, lost = self._copies, self._fresh, self._lost
        for triple in triples:
            had = copies.get(triple, 0)
            copies[triple] = had + 1
            if had:
                continue
            if triple in lost:
                lost.discard(triple)
            else:
                fresh.add(triple)

    def went(self, triples: Sequence[Triple]) -> None:
        """Count triples out."""
        copies, fresh, lost = self._copies, self._fresh, self._lost
        for triple in triples:
            left = copies[triple] - 1
            if left:
                copies[triple] = left
                continue
            del copies[triple]
            if triple in fresh:
                fresh.discard(triple)
            else:
                lost.add(triple)

    def settle(self, _held: object) -> bool:
        """Whether the set has changed in the way that counts."""
        changed = bool(self._fresh) or (self._evictions and bool(self._lost))
        self._fresh.clear()
        self._lost.clear()
        return changed


class Moves:
    """Whether anything came or went, for reports that are sent only when an answer has changed.

    What came and went again is no change of the answer, so nobody sees that it counted; only the first report of all is
    due when something is held, whatever the answer was before.
    """

    def __init__(self) -> None:
        self._moved = self._begun = False

    @property
    def none(self) -> bool:
        """Whether nothing came or went."""
        return not self._moved

    def came(self, _triples: Sequence[Triple]) -> None:
        """Something came."""
        self._moved = True

    def went(self, _triples: Sequence[Triple]) -> None:
        """Something went."""
        self._moved = True

    def settle(self, held: object) -> bool:
        """Whether anything came or went, but for what left nothing before the first report."""
        changed = self._moved and (self._begun or bool(held))
        self._begun, self._moved = self._begun or changed, False
        return changed


def noticing(queries: Sequence[ContinuousQuery], semantics: Semantics) -> Differences | Moves | None:
    """What notices the changes of one content of queries, ``None`` where they are no reason to report.

    An answer tells a change by itself when only its own changes are sent, every move counts, and it follows from the
    set of triples alone: timestamp() reads when they came, SAMPLE takes what came first.
    """
    if Report.CONTENT_CHANGE not in semantics.report:
        return None
    shown = not semantics.notify_empty and semantics.changes is Changes.BOTH
    return Moves() if shown and all(_tells(query, semantics) for query in queries) else Differences(semantics.changes)


def _tells(query: ContinuousQuery, semantics: Semantics) -> bool:
    """Whether what is sent changes only with the set of triples."""
    deltas = (query.r2s or semantics.r2s) is not R2S.RSTREAM
    return deltas and not uses_timestamp(query.form) and not _samples(query.form)


def _samples(form: al.QueryForm) -> bool:
    groups = [pattern for pattern in every_pattern(form.pattern) if isinstance(pattern, al.Group)]
    return any(aggregate.function == "SAMPLE" for group in groups for _, aggregate in group.aggregates)
