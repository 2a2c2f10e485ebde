"""Rstream over many reports, scored by counts from changes: no expected bag is materialised.

``by_changes`` gives the same units as the comparison of rows (``oracle.RowScores``), in time proportional to the
changes from report to report on either side: under content change 30,000 reports over windows of 35,000 triples would
otherwise repeat nearly the same bag 30,000 times. ``countable`` says where it applies: report-grained answers to a
SELECT under Rstream whose reports follow changes or a clock. Cases that equality of terms cannot decide go to the
comparison of rows: blank nodes, which are compared by isomorphism within one answer, and answers that differ from the
evaluator's own where the query may have several legal ones.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate, islice

from streamgauge.model.algebra import Select, Slice
from streamgauge.model.answer import Answer
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.report import ExpectedReport
from streamgauge.model.run import Run
from streamgauge.model.semantics import R2S, Counting, Grain, Report, Semantics
from streamgauge.model.terms import Row
from streamgauge.model.verdict import WindowVerdict
from streamgauge.oracle.expected.reports import ContentChange, ExpectChanges, Net, received, sent
from streamgauge.oracle.judging.align import align
from streamgauge.oracle.judging.compare import similarity
from streamgauge.oracle.judging.metrics import DueTime, Unit, due_time, judge
from streamgauge.oracle.judging.oracle import JudgedWindow, JudgingRules, RowScores, Score, Scored, in_columns
from streamgauge.oracle.worlds.blank_nodes import has_blanks
from streamgauge.oracle.worlds.membership import Overlap
from streamgauge.semantics.definition import operator


def countable(query: ContinuousQuery, semantics: Semantics) -> bool:
    """Whether the answers of a run can be scored by counts: nearly equal whole bags, one after the other."""
    return (
        isinstance(query.form, Select)
        and operator(query, semantics) is R2S.RSTREAM
        and semantics.grain is Grain.REPORT
        and semantics.answers is Counting.BAG
        and semantics.since is None
        and Report.WINDOW_CLOSE not in semantics.report
        # LIMIT without a total order has several legal answers, which counts of rows cannot tell apart.
        and not isinstance(query.form.pattern, Slice)
    )


def by_changes(run: Run, changes: ExpectChanges, rows: RowScores, rules: JudgingRules) -> Score:
    """Scores of a ``countable`` run from the changes between expected bags.

    From its ``rows`` where counts cannot decide.
    """
    header, form = run.header, run.header.query.form
    names = form.variables if isinstance(form, Select) else ()
    answers = [in_columns(answer, names) for answer in run.answers]
    nets_received = list(received(answers))

    def score(t0: int) -> Scored:
        reports = list(sent(changes(header.query, header.semantics, header.advanced_to, t0), header.semantics))
        nets = [report.net for report in reports]
        if any(map(has_blanks, (*nets_received, *nets))):
            return rows(t0)
        windows = _units(reports, answers, names, Beside(nets, nets_received), due_time(run), rules.witnesses)
        scored = Scored.of(names, map(JudgedWindow, windows), rules.max_delay)
        # Only where an answer is not the evaluator's own may another legal one be meant.
        return rows(t0) if scored.totals.wrong and rows.is_open() else scored

    return score


class Beside:
    """Two cursors over histories of bags, expected and received, with the size of their intersection kept up to date.

    Moving to another pair of bags costs the changes in between, in either direction. Alignment walks near a diagonal.
    """

    def __init__(self, wanted: Sequence[Net], nets: Sequence[Net]) -> None:
        self._nets = wanted, nets
        self.sizes = tuple(tuple(accumulate(sum(net.values()) for net in nets)) for nets in self._nets)
        self._bags: tuple[Counter[Row], Counter[Row]] = Counter(), Counter()
        self._at = [-1, -1]
        self._common = 0
        # A dict as an ordered set: the witnesses are the same each time that a run is judged.
        self._differing: dict[Row, None] = {}

    def move(self, i: int, j: int) -> None:
        """Move to the bags of report i and answer j."""
        for side, to in ((0, i), (1, j)):
            while self._at[side] != to:
                # A net belongs to the bag that it leads to: going forward it is applied after the step, going back
                # undone before it.
                # A worked example: nets +a, +b, -a are the bags {a}, {a, b}, {b}. From the first to the third +b and
                # -a are applied; back to the second, -a is undone.
                forward = self._at[side] < to
                self._at[side] += forward
                net = self._nets[side][self._at[side]]
                for row, count in net.items():
                    self._add(side, row, count if forward else -count)
                self._at[side] -= not forward

    def _add(self, side: int, row: Row, count: int) -> None:
        wanted, actual = self._bags
        before = min(wanted[row], actual[row])
        bag = self._bags[side]
        bag[row] += count
        self._common += min(wanted[row], actual[row]) - before
        # Only rows that differ are listed, so that witnesses are found without walking through both bags.
        if wanted[row] != actual[row]:
            self._differing[row] = None
        else:
            self._differing.pop(row, None)
        if not bag[row]:
            del bag[row]

    def common(self, i: int, j: int) -> int:
        """How many rows report i and answer j have in common."""
        self.move(i, j)
        return self._common

    def similarity(self, i: int, j: int) -> float:
        """|E and A| / |E or A| of report i and answer j."""
        return similarity(self.common(i, j), self.sizes[0][i], self.sizes[1][j])

    def overlap(self, i: int | None, j: int | None, limit: int) -> Overlap:
        """The rows that report i and answer j share, and at most ``limit`` rows of each that the other lacks."""
        if i is None or j is None:
            return Overlap(0, () if i is None else self.rows(0, i, limit), () if j is None else self.rows(1, j, limit))
        self.move(i, j)
        wanted, actual = self._bags
        missing = (row for row in self._differing for _ in range(wanted[row] - actual[row]))
        surplus = (row for row in self._differing for _ in range(actual[row] - wanted[row]))
        return Overlap(self._common, tuple(islice(missing, limit)), tuple(islice(surplus, limit)))

    def rows(self, side: int, place: int, limit: int) -> tuple[Row, ...]:
        """At most ``limit`` rows of the bag at a place, of the reports (side 0) or of the answers (side 1)."""
        first, second = self._at
        self.move(*((first, place) if side else (place, second)))
        return tuple(islice(self._bags[side].elements(), limit))


def _units(
    reports: Sequence[ContentChange],
    answers: Sequence[Answer],
    names: tuple[str, ...],
    beside: Beside,
    when: DueTime,
    witnesses: int,
) -> Iterator[WindowVerdict]:
    """The scored units: due reports aligned with answers."""
    expected = [ExpectedReport(report.due, names, (), report.content) for report in reports]
    pairs = align(expected, answers, beside.similarity)
    for index, (i, j) in enumerate(pairs):
        sizes = 0 if i is None else beside.sizes[0][i], 0 if j is None else beside.sizes[1][j]
        report, answer = None if i is None else expected[i], None if j is None else answers[j]
        yield judge(index, Unit(report, answer, j, beside.overlap(i, j, witnesses)), when, witnesses, sizes)
