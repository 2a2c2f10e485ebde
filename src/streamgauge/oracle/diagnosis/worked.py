"""One window worked through: what was expected, what was recorded, and what the model makes of it."""

from collections.abc import Iterator
from dataclasses import dataclass

from streamgauge.oracle.diagnosis.diagnose import Explained
from streamgauge.oracle.diagnosis.distance import reports
from streamgauge.oracle.diagnosis.models import Rows, Said
from streamgauge.oracle.diagnosis.recorded import Recorded
from streamgauge.oracle.diagnosis.search import SearchResult
from streamgauge.oracle.judging.align import by_order


@dataclass(frozen=True, slots=True)
class Worked:
    """A report that differs from the declared semantics: its instant and scope (ms), and rows; ``None``: no report."""

    instant: int | None
    scope: tuple[int, int] | None
    expected: Rows | None
    recorded: Rows | None
    model: Rows | None
    model_scope: tuple[int, int] | None
    variables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Unit:
    """One report of the model, and the answers that it explains; ``None`` where there is none."""

    said: Said | None
    recorded: Rows | None


def worked(explained: Explained) -> Worked | None:
    """The first report that differs from the declared semantics; ``None`` when none does."""
    search, declared = explained.search, explained.search.told(explained.declared)
    at = {said.instant: said for said in declared}
    found = explained.found[0] if explained.found else None
    for unit in _units(explained, found):
        instant = unit.said.instant if unit.said else None
        due = at.get(instant) if instant is not None else None
        if _differs(search.recorded, due, unit.recorded):
            model = unit.said if found else None
            return Worked(
                instant,
                (due.due.start, due.due.end) if due else None,
                due.rows if due else None,
                unit.recorded,
                model.rows if model else None,
                (model.due.start, model.due.end) if model else None,
                search.variables,
            )
    return None


def _differs(recorded: Recorded, due: Said | None, rows: Rows | None) -> bool:
    if due is None or rows is None:
        return (due is None) != (rows is None)
    return not recorded.same(due.rows, rows)


def _units(explained: Explained, found: SearchResult | None) -> Iterator[_Unit]:
    search = explained.search
    case = found.case if found else explained.declared
    told = search.told(case)
    recorded = search.recorded.under(case.semantics.grain)
    fit = None if found is None else found.fit or search.fit(case, told, ())
    if fit is None:
        yield from _aligned(told, recorded, search.variables)
        return
    for (i, j, _), (ahead, after, _) in zip(fit.path, fit.path[1:], strict=False):
        said = fit.told[i] if i < ahead else None
        rows = tuple(row for k in range(j, after) for row in recorded.rows(k)) if j < after else None
        yield _Unit(said, rows)


def _aligned(told: tuple[Said, ...], recorded: Recorded, variables: tuple[str, ...]) -> Iterator[_Unit]:
    answers = reports(told, recorded, variables)

    def similar(i: int, j: int) -> float:
        return float(recorded.same(told[i].rows, answers[j].added))

    for i, j in by_order(range(len(told)), range(len(answers)), similar):
        yield _Unit(None if i is None else told[i], None if j is None else answers[j].added)
