"""Allow lists of evaluators: the fields of Semantics that each honours, with their values; others are refused by name.

So a new field or value is refused by every evaluator until its list names it.
"""

from collections.abc import Collection, Mapping
from dataclasses import MISSING, Field, fields
from typing import Any, Final, TypeAlias

from streamgauge.model.semantics import (
    R2S,
    Borders,
    Changes,
    Clock,
    Counting,
    Due,
    EmptyAggregate,
    Grain,
    Origin,
    Report,
    Scope,
    Semantics,
    StaticData,
    Tick,
)

HonouredFields: TypeAlias = Mapping[str, Collection[object] | None]
"""Allowed values by field, ``None`` for any value; if the field is a set, each of its members has to be allowed."""

SHARED: Final[dict[str, Collection[object] | None]] = {
    "report": (
        Report.WINDOW_CLOSE, Report.CONTENT_CHANGE, Report.NON_EMPTY, Report.PERIODIC, Report.EXPIRATION,
    ),
    "tick": (Tick.TUPLE, Tick.ELEMENT, Tick.BATCH, Tick.TIME),
    "r2s": (R2S.RSTREAM, R2S.ISTREAM, R2S.DSTREAM, R2S.CHANGES),
    "r2s_able": (R2S.RSTREAM, R2S.ISTREAM, R2S.DSTREAM, R2S.CHANGES),
    "notify_empty": (True, False),
    "origin": (Origin.FIXED, Origin.FIRST, Origin.SEARCH),
    "t0": None,
    "borders": (Borders.CLOSED_OPEN, Borders.OPEN_CLOSED, Borders.CLOSED),
    "scope": (Scope.SLIDES, Scope.RANGE),
    "partial_head": (True, False),
    "due": (Due.ALL, Due.LAST),
    "changes": (Changes.BOTH, Changes.ARRIVALS),
    "period": None,
    "time_unit": None,
    "lateness": None,
    "clock": (Clock.APPLICATION, Clock.ARRIVAL, Clock.PUT),
    "content": (Counting.SET, Counting.BAG, Counting.UPDATES),
    "answers": (Counting.SET, Counting.BAG),
    "grain": (Grain.REPORT, Grain.ROW),
    "empty_aggregate": (
        EmptyAggregate.SPARQL, EmptyAggregate.UNBOUND, EmptyAggregate.EMPTY_STRING, EmptyAggregate.NO_ROW,
    ),
    "since": None,
    "static_data": (StaticData.OUTSIDE, StaticData.BESIDE),
}  # fmt: skip
"""The values that a list names unless it has others: ``SHARED | {"due": (Due.ALL,)}``.

A field or value of a later version is added to the lists of those that honour it, never here.
"""

DEFINED: Final = SHARED
"""The definition honours all of them."""

_LABELS: Final = ("name", "sources")
"""Fields that document a semantics and change nothing."""


def not_honoured(
    semantics: Semantics, honoured: HonouredFields, who: str, sentences: Mapping[object, str] | None = None
) -> str | None:
    """Why an evaluator (``who``) that honours these fields refuses a semantics; ``None`` if it does not.

    ``sentences`` replace the general message for a value, or for a field by its name; the first that applies is used. A
    field that is not listed is refused unless it has its default.
    """
    refused = [
        (field.name, value)
        for field in fields(semantics)
        if field.name not in _LABELS
        for value in _refused(field, getattr(semantics, field.name), honoured)
    ]
    # In the order of ``sentences``: a caller puts the most telling one first.
    for key, sentence in (sentences or {}).items():
        if any(key in field_and_value for field_and_value in refused):
            return sentence
    for name, value in refused:
        if name not in honoured:
            return f"{name} = {value}: {who} does not know this field of a semantics, leave it out"
        return f"{name} = {value}: {who} does not honour this value of a semantics, take another one"
    return None


def _refused(field: "Field[Any]", value: object, honoured: HonouredFields) -> list[object]:
    """The values of a field that are not allowed."""
    if field.name not in honoured:
        return [value] if value != _default(field) else []
    allowed = honoured[field.name]
    return [
        one
        for one in (value if isinstance(value, frozenset) else (value,))
        if allowed is not None and one not in allowed
    ]


def _default(field: "Field[Any]") -> object:
    return field.default_factory() if field.default_factory is not MISSING else field.default
