"""Runs as a matrix: rows and columns for the values of two things that were asked, the outcome of runs in a cell."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final
from urllib.parse import urlencode

from streamgauge.model.verdict import Judgement
from streamgauge.report.numbers import NOTHING, duration, percent
from streamgauge.workbench.rooms.runs.report_page import TOGETHER
from streamgauge.workbench.rooms.runs.run_list import DAMAGED, ICONS, NOT_JUDGED, RunLine

FACTORS: Final[Mapping[str, tuple[str, Callable[[RunLine], str]]]] = {
    "system": ("engine and semantics", lambda line: f"{line.engine} as {line.semantics}"),
    "engine": ("engine", lambda line: line.engine),
    "semantics": ("semantics", lambda line: line.semantics),
    "query": ("query", lambda line: line.query),
    "workload": ("workload", lambda line: line.workload),
    "pace": ("pace", lambda line: line.pace),
    "seed": ("seed", lambda line: line.seed),
    "experiment": ("experiment", lambda line: line.experiment),
}
"""The dimensions for rows and columns: the heading, and the value of a run."""

MAX_ROWS: Final = 200
MAX_COLUMNS: Final = 30
"""Rows and columns of a matrix; the runs of others are counted in its note."""

WORST: Final = (DAMAGED, NOT_JUDGED, *(one.value for one in (Judgement.WRONG, Judgement.UNKNOWN, Judgement.LATE)))
"""The states of runs, worst first, without "right"."""


@dataclass(frozen=True, slots=True)
class MatrixCell:
    """The runs of a cell: how many, how many are right, the icon of the worst, lines in words, where they lead."""

    count: int
    right: int
    icon: str
    words: Sequence[str]
    address: str


@dataclass(frozen=True, slots=True)
class RunMatrix:
    """The values of rows and columns in order, the cells by both, and how many runs are in none."""

    rows: Sequence[str]
    columns: Sequence[str]
    cells: Mapping[tuple[str, str], MatrixCell]
    left_out: int


@dataclass(frozen=True, slots=True)
class MatrixRequest:
    """The dimensions of rows and columns, as in the query of an address."""

    rows: str = "system"
    columns: str = "workload"

    @classmethod
    def of(cls, parameters: Mapping[str, str]) -> "MatrixRequest":
        """Read the query of an address; unknown dimensions are ignored."""
        rows, columns = parameters.get("rows", ""), parameters.get("columns", "")
        rows = rows if rows in FACTORS else "system"
        return cls(rows, columns if columns in FACTORS and columns != rows else _other(rows))


def _other(rows: str) -> str:
    return "workload" if rows != "workload" else "system"


def matrix(lines: Sequence[RunLine], wanted: MatrixRequest) -> RunMatrix:
    """The matrix of runs."""
    row_of, column_of = FACTORS[wanted.rows][1], FACTORS[wanted.columns][1]
    groups: dict[tuple[str, str], list[RunLine]] = {}
    for line in lines:
        groups.setdefault((row_of(line) or NOTHING, column_of(line) or NOTHING), []).append(line)
    rows = sorted({row for row, _ in groups}, key=_natural)[:MAX_ROWS]
    columns = sorted({column for _, column in groups}, key=_natural)[:MAX_COLUMNS]
    shown = {place: own for place, own in groups.items() if place[0] in rows and place[1] in columns}
    cells = {place: _cell(own) for place, own in shown.items()}
    return RunMatrix(rows, columns, cells, len(lines) - sum(map(len, shown.values())))


def _natural(text: str) -> tuple[object, ...]:
    """Numbers in a text by their size: 2 before 10."""
    parts: list[tuple[int, object]] = []
    for is_number, letters in _runs(text):
        # The first number of each pair keeps numbers and letters apart, which cannot be compared with each other:
        # "E10" becomes ((1, "e"), (0, 10)).
        parts.append((0, int(letters)) if is_number else (1, letters.casefold()))
    return tuple(parts)


def _runs(text: str) -> list[tuple[bool, str]]:
    """A text as parts that are whole numbers and parts that are not."""
    parts: list[tuple[bool, str]] = []
    for letter in text[:200]:
        is_number = letter.isascii() and letter.isdigit()
        if parts and parts[-1][0] == is_number:
            parts[-1] = (is_number, parts[-1][1] + letter)
        else:
            parts.append((is_number, letter))
    return parts


def _cell(lines: Sequence[RunLine]) -> MatrixCell:
    states = {line.state for line in lines}
    worst = next((state for state in WORST if state in states), Judgement.RIGHT.value)
    right = sum(line.state in (Judgement.RIGHT.value, Judgement.LATE.value) for line in lines)
    scores = [
        (name, values)
        for name, values in (
            ("precision", [line.precision for line in lines if line.precision is not None]),
            ("recall", [line.recall for line in lines if line.recall is not None]),
        )
        if values and min(values) < 1
    ]
    words = [f"{name} {percent(min(values))}" for name, values in scores]
    if delays := [line.delay for line in lines if line.delay is not None]:
        words.append(duration(median(delays)))
    return MatrixCell(len(lines), right, ICONS.get(worst, "unknown"), words, _address(lines))


def _address(lines: Sequence[RunLine]) -> str:
    """The page of one run, the comparison of two, the report on more; empty for more than a report may have."""
    if len(lines) == 1:
        return f"/runs/run/{lines[0].address}"
    if len(lines) > TOGETHER or not all(line.judged for line in lines):
        return ""
    where = "compare" if len(lines) == 2 else "reports"
    return f"/runs/{where}?" + urlencode([("run", line.place) for line in lines])
