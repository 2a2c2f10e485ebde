"""Several live queries side by side, each with its state, a chart with its own threshold, and its newest rows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup
from starlette.datastructures import QueryParams

from streamgauge.workbench.rooms.live.chart import (
    ChartChoice,
    ChartError,
    LiveChart,
    chosen_chart,
    drawing,
    numeric_columns,
)
from streamgauge.workbench.rooms.live.registrations import QueryActivity
from streamgauge.workbench.rooms.live.rows import NumberedAnswer, ShownRow, columns, newest_rows
from streamgauge.workbench.terms import declared_prefixes

NEWEST: Final = 5
"""Rows of a query that are shown."""

_WIDTH, _HEIGHT = 460, 200
_OWN: Final = ("show", "threshold")
"""Fields of the form that each query has for itself, as ``show.NAME``; the time range is common."""


@dataclass(frozen=True, slots=True)
class BoardPanel:
    """A query's part of the board; ``error`` says which choice could not be read."""

    activity: QueryActivity
    choice: ChartChoice
    chart: LiveChart
    picture: Markup
    numeric: Sequence[str]
    columns: Sequence[str]
    rows: Sequence[ShownRow]
    error: str = ""


def board_panels(
    activities: Sequence[QueryActivity],
    fields: QueryParams,
    answers: Callable[[QueryActivity], Sequence[NumberedAnswer]],
) -> list[BoardPanel]:
    """The panels of the queries that ``q`` names, in the order of their registration; of all where none is named."""
    wanted = set(fields.getlist("q"))
    return [
        _panel(activity, _own(fields, activity.query.name), answers(activity))
        for activity in activities
        if not wanted or activity.query.name in wanted
    ]


def _own(fields: QueryParams, name: str) -> Mapping[str, str]:
    """The fields of one query's chart."""
    return {field: fields.get(f"{field}.{name}", "") for field in _OWN} | {"span": fields.get("span", "")}


def _panel(activity: QueryActivity, fields: Mapping[str, str], answers: Sequence[NumberedAnswer]) -> BoardPanel:
    error = ""
    try:
        choice = ChartChoice.of(fields)
    except ChartError as wrong:
        choice, error = ChartChoice(), str(wrong)
    chart = chosen_chart(answers, choice)
    picture = drawing(chart, _WIDTH, _HEIGHT, "board")
    rows = newest_rows(answers[-NEWEST:], declared_prefixes(activity.query.question.text))[:NEWEST]
    return BoardPanel(activity, choice, chart, picture, numeric_columns(answers), columns(answers), rows, error)
