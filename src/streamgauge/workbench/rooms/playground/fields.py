"""The fields of Semantics as form controls: the question of each, its values, and the effect of each value."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final, Literal

from streamgauge.formats.fields import FieldError, decode, encode
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
from streamgauge.semantics.profiles import PROFILES

BASE: Final = "base"
"""The name of the semantics that conformance cases start from."""
_BASE: Final = Semantics(BASE, tick=Tick.ELEMENT)
_LEFT_OUT: Final = ("name", "sources")


@dataclass(frozen=True, slots=True)
class FieldControl:
    """A field of Semantics: its label, the question that it answers, and its values with what each does.

    A ``number`` has no list of values: ``does`` is its sentence. ``rare`` fields are folded on the page.
    """

    name: str
    label: str
    question: str
    kind: Literal["choice", "several", "switch", "number"]
    values: Mapping[str, str] = field(default_factory=dict)
    does: str = ""
    rare: bool = False


def _control(
    name: str, label: str, question: str, values: Mapping[StrEnum, str], *, rare: bool = False
) -> FieldControl:
    return FieldControl(
        name, label, question, "choice", {str(value): does for value, does in values.items()}, rare=rare
    )


_REPORTS: Final = {
    Report.WINDOW_CLOSE: "a report is due when a window closes",
    Report.CONTENT_CHANGE: "a report is due only when the content is not what it was at the candidate before",
    Report.NON_EMPTY: "no report is due over an empty content",
    Report.PERIODIC: "a report is due at every period",
    Report.EXPIRATION: "a report is due when the first fact that the last one held ends",
}
_OPERATORS: Final[Mapping[StrEnum, str]] = {
    R2S.RSTREAM: "every row of the answer is sent",
    R2S.ISTREAM: "only rows that the last evaluated instant did not have are sent",
    R2S.DSTREAM: "only rows that the last evaluated instant had and this one has not are sent",
    R2S.CHANGES: "rows that came are sent with +, rows that left with -",
}

CONTROLS: Final[tuple[FieldControl, ...]] = (
    FieldControl(
        "report",
        "Report",
        "When is a report due?",
        "several",
        {str(report_condition): does for report_condition, does in _REPORTS.items()},
    ),
    _control(
        "tick",
        "Tick",
        "When is an arrival seen?",
        {
            Tick.TUPLE: "the content is looked at after every triple",
            Tick.ELEMENT: "the content is looked at after every element",
            Tick.BATCH: "the content is looked at once for each distinct time, when it is complete",
            Tick.TIME: "the content is looked at by a clock, every time unit",
        },
    ),
    _control(
        "borders",
        "Borders",
        "Which ends belong to a window?",
        {
            Borders.CLOSED_OPEN: "an element on a border belongs to the window that starts there",
            Borders.OPEN_CLOSED: "an element on a border belongs to the window that ends there",
            Borders.CLOSED: "an element on a border belongs to both windows",
        },
    ),
    _control(
        "origin",
        "Origin of t0",
        "Where does the first window start?",
        {
            Origin.FIXED: "the first window starts at t0",
            Origin.FIRST: "the first window starts at the first element, floored to the time unit",
            Origin.SEARCH: "the start of the first window is not known; drawn is the first candidate, t0",
        },
    ),
    FieldControl(
        "t0",
        "t0 (ms)",
        "The start of the first window",
        "number",
        does="all windows move, and earlier elements do not count",
    ),
    _control(
        "r2s",
        "Operator (R2S)",
        "Which rows are sent, where the query has no keyword?",
        _OPERATORS,
    ),
    FieldControl(
        "notify_empty",
        "Empty answers",
        "Is an empty answer sent?",
        "switch",
        {"yes": "an answer without rows is sent", "no": "an answer without rows is not sent"},
    ),
    FieldControl(
        "partial_head",
        "Partial head windows",
        "Do windows report that closed before a whole size has passed?",
        "switch",
        {"yes": "windows report from the first slide on, cut at t0", "no": "the first report is that of a full window"},
    ),
    _control(
        "scope",
        "Scope",
        "How does the scope of a content report move?",
        {
            Scope.SLIDES: "the scope is the window that opened first of those that are open, so it moves in slides",
            Scope.RANGE: "the scope looks back a whole range from the instant, and the slide does not count",
        },
    ),
    _control(
        "changes",
        "Changes",
        "Which changes count as a content change?",
        {
            Changes.BOTH: "arrivals and evictions change a content",
            Changes.ARRIVALS: "only arrivals change a content",
        },
    ),
    _control(
        "due",
        "Several due at once",
        "Which of the closes that one arrival makes due are reported?",
        {Due.ALL: "every close is reported", Due.LAST: "only the last close is reported"},
    ),
    FieldControl(
        "period",
        "Period (ms)",
        "Time between two periodic reports",
        "number",
        does="periodic reports come at other instants",
    ),
    FieldControl(
        "time_unit",
        "Time unit (ms)",
        "The step of the clock and of t0",
        "number",
        does="the clock ticks, and t0 is floored, in other steps",
    ),
    FieldControl(
        "lateness",
        "Lateness bound (ms)",
        "How late may an element come?",
        "number",
        does="other elements are late, and late ones are left out",
    ),
    _control(
        "content",
        "Content",
        "Do repeated triples count?",
        {
            Counting.SET: "a triple that comes twice is in the content once",
            Counting.BAG: "a triple that comes twice matches twice",
            Counting.UPDATES: "each element is matched by itself, and the answer is what the newest one updates",
        },
        rare=True,
    ),
    _control(
        "answers",
        "Rows",
        "Do repeated rows count?",
        {Counting.BAG: "equal rows are all sent", Counting.SET: "of equal rows one is sent"},
        rare=True,
    ),
    _control(
        "empty_aggregate",
        "Aggregate over nothing",
        "What does an aggregate without GROUP BY give when nothing matches?",
        {
            EmptyAggregate.SPARQL: "COUNT, SUM and AVG of nothing are 0, the others unbound",
            EmptyAggregate.UNBOUND: "an aggregate of nothing is an unbound cell",
            EmptyAggregate.EMPTY_STRING: "an aggregate of nothing is an empty string",
            EmptyAggregate.NO_ROW: "an aggregate of nothing gives no row",
        },
        rare=True,
    ),
    _control(
        "grain",
        "Grain",
        "What is one answer?",
        {
            Grain.REPORT: "one answer has all rows of a report",
            Grain.ROW: "each row is an answer of its own; the reports are the same",
        },
        rare=True,
    ),
    _control(
        "clock",
        "Clock",
        "Which time stamps an element?",
        {
            Clock.APPLICATION: "elements count at their own times",
            Clock.ARRIVAL: "elements count when the engine takes them in; here they arrive at their own times",
            Clock.PUT: "elements count when they are handed over; here they are handed over at their own times",
        },
        rare=True,
    ),
    FieldControl(
        "r2s_able",
        "Operators that it has",
        "Which operators may a query ask for?",
        "several",
        {str(operator): f"a query may ask for {operator}" for operator in R2S},
        rare=True,
    ),
    FieldControl(
        "static_data",
        "Static data",
        "Does a WINDOW clause that holds all patterns match static data?",
        "choice",
        {
            str(StaticData.OUTSIDE): "no: it matches the stream only",
            str(StaticData.BESIDE): "yes: stream and static data are one graph",
        },
        rare=True,
    ),
    FieldControl(
        "since",
        "Since (ms)",
        "From when on is a subscriber told?",
        "number",
        does="reports before that instant are evaluated and not sent",
        rare=True,
    ),
)

_BY_NAME: Final = {control.name: control for control in CONTROLS}


def profile_names() -> tuple[str, ...]:
    """The semantics that a form may start from: the base of conformance cases, and every profile."""
    return (BASE, *PROFILES)


def started_from(name: str) -> Semantics:
    """The semantics of a name that ``profile_names`` has; FieldError otherwise."""
    if name == BASE:
        return _BASE
    if name not in PROFILES:
        raise FieldError(f"there is no semantics {name!r} to start from: there are {', '.join(profile_names())}")
    return PROFILES[name]


def semantics_of(data: Mapping[str, Any]) -> Semantics:
    """The semantics of a profile (``profile``) with changed fields; FieldError names the mistake.

    It keeps the profile's name while only origin, t0 and since differ.
    """
    start = started_from(str(data.get("profile", BASE)))
    settings = {name: value for name, value in data.items() if name != "profile"}
    # As JSON values, since a form and a link have no others; ``decode`` then checks profile and changes alike.
    whole = {**encode(start, _LEFT_OUT), **settings}
    semantics = decode(Semantics, {"name": start.name, **whole})
    # Where the windows of a run begin is no property of an engine.
    begun_alike = replace(semantics, origin=start.origin, t0=start.t0, since=start.since)
    return semantics if begun_alike == start else replace(semantics, name=f"{start.name}, changed")


def fields_of(semantics: Semantics) -> dict[str, Any]:
    """The fields as JSON values, in the order of the controls."""
    encoded = encode(semantics, _LEFT_OUT)
    return {control.name: encoded[control.name] for control in CONTROLS}


def differing(one: Semantics, other: Semantics) -> tuple[str, ...]:
    """The fields in which two semantics differ, in the order of the controls."""
    return tuple(control.name for control in CONTROLS if getattr(one, control.name) != getattr(other, control.name))


def in_words(value: object) -> str:
    """A value of a field as the page shows it: yes and no, ``none``, several joined by a plus."""
    match value:
        case None:
            return "none"
        case bool():
            return "yes" if value else "no"
        case frozenset() | list():
            return " + ".join(sorted(map(str, value))) or "none"
        case _:
            return str(value)


def difference(name: str, one: Semantics, other: Semantics) -> str:
    """The sentence of a field that differs: both values, and what the second does."""
    control = _BY_NAME[name]
    before, after = getattr(one, name), getattr(other, name)
    message = f"{control.label.removesuffix(' (ms)')} is {in_words(after)} in place of {in_words(before)}: "
    return message + "; ".join(_effects(control, before, after)) + "."


def _effects(control: FieldControl, before: Any, after: Any) -> Sequence[str]:
    """The effect of the second value; for several values, the added and the removed ones."""
    match control.kind:
        case "number":
            return [control.does]
        case "several":
            # A worked example: the report changes from {window close} to {window close, non-empty}. The one effect is
            # that no report is due over an empty content.
            came = [control.values[str(condition)] for condition in sorted(after - before)]
            went = [f"it no longer holds that {control.values[str(condition)]}" for condition in sorted(before - after)]
            return [*came, *went]
        case _:
            return [control.values[in_words(after)]]
