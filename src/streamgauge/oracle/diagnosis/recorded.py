"""The recorded answers of a run, as an explanation consumes them: exactly, report by report."""

from collections import Counter
from collections.abc import Sequence
from functools import cached_property

from streamgauge.model.answer import Answer
from streamgauge.model.run import Run
from streamgauge.model.semantics import Grain
from streamgauge.model.terms import Term
from streamgauge.oracle.diagnosis.models import Rows, Said
from streamgauge.oracle.judging.blanks import has_blanks
from streamgauge.oracle.judging.compare import computed_columns, overlap
from streamgauge.oracle.judging.merge import whole
from streamgauge.oracle.judging.oracle import in_columns


class Recorded:
    """Recorded answers; ``grain`` says whether a report is one answer or a row each."""

    def __init__(self, run: Run, variables: tuple[str, ...], grain: Grain) -> None:
        self.answers = _in_order([in_columns(answer, variables) for answer in whole(run.answers)])
        self.grain = grain
        self.computed = computed_columns(run.header.query.form)
        self._same: dict[tuple[Rows, Rows], bool] = {}
        self._prints: dict[Rows, object] = {}
        self.bag = Counter(row for answer in self.answers for row in answer.added)

    @property
    def count(self) -> int:
        """How many answers were recorded."""
        return len(self.answers)

    @property
    def by_row(self) -> bool:
        """Whether a report is one answer per row."""
        return self.grain is Grain.ROW

    def rows(self, at: int) -> Rows:
        """The rows of an answer."""
        return self.answers[at].added

    def instant(self, at: int) -> int | None:
        """The instant (ms) that an answer names."""
        return self.answers[at].instant

    def take(self, said: Said, at: int) -> int | None:
        """The position after the answers that say exactly this report from a position on, ``None`` if they do not."""
        after = at + 1 if self.grain is Grain.REPORT else self._row_by_row(said, at)
        if after is None or after > self.count or (self.grain is Grain.REPORT and not self.named(said, at)):
            return None
        rows = self.rows(at) if after == at + 1 else tuple(row for k in range(at, after) for row in self.rows(k))
        return after if self.same(said.rows, rows) else None

    def _row_by_row(self, said: Said, at: int) -> int | None:
        """Where as many rows as the report has are read, from answers that name its instant or none."""
        left, after = len(said.rows), at
        if left == 0:
            return at + 1
        while left > 0 and after < self.count and self.named(said, after) and self.rows(after):
            left -= len(self.rows(after))
            after += 1
        return after if left == 0 else None

    def named(self, said: Said, at: int) -> bool:
        """Whether an answer names the report's instant, or none."""
        return at < self.count and self.answers[at].instant in (None, said.instant)

    def same(self, expected: Rows, actual: Rows) -> bool:
        """Whether two bags are equal, computed numbers within tolerance."""
        if len(expected) != len(actual):
            return False
        if expected == actual:
            return True
        key = (expected, actual)
        if key not in self._same:
            self._same[key] = self._equal(expected, actual)
        return self._same[key]

    @cached_property
    def fingerprints(self) -> Counter[object]:
        """The fingerprints of all answers."""
        return Counter(self.fingerprint(answer.added) for answer in self.answers)

    def fingerprint(self, rows: Rows) -> object:
        """A value that is the same for equal bags: computed numbers and blank nodes are left out."""
        if rows not in self._prints:
            bag = Counter(tuple(self._plain(at, term) for at, term in enumerate(row)) for row in rows)
            self._prints[rows] = frozenset(bag.items())
        return self._prints[rows]

    def _plain(self, at: int, term: Term | None) -> Term | None:
        return None if term is None or at in self.computed or term.startswith("_:") else term

    def _equal(self, expected: Rows, actual: Rows) -> bool:
        if Counter(expected) == Counter(actual):
            return True
        if not self.computed and not has_blanks(actual):
            return False
        return overlap(expected, actual, self.computed).common == len(actual)

    def under(self, grain: Grain) -> "Recorded":
        """The same answers read with another grain."""
        if grain is self.grain:
            return self
        other = object.__new__(Recorded)
        other.__dict__.update(self.__dict__)
        other.grain = grain
        return other


def _in_order(answers: Sequence[Answer]) -> tuple[Answer, ...]:
    """Answers that all name their instant by it, as the oracle takes them; others as they came."""
    if all(answer.instant is not None for answer in answers):
        return tuple(sorted(answers, key=lambda answer: answer.instant or 0))
    return tuple(answers)
