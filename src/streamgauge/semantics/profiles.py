"""Named Semantics values: the engines of the field, each field with the source of its value."""

from collections.abc import Iterable
from dataclasses import replace

from streamgauge.model.mistake import MistakeError
from streamgauge.model.phrases import offered, spelled
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

_TABLE_1 = "CSRBench, table 1"
_SECTION_4 = "CSRBench, section 4"
_ORACLE = "CSRBench's oracle, its engine settings (csrbench-oracle ac823b2)"
_RECORDED = "CSRBench's recorded answers (csrbench-oracle ac823b2)"
_CSPARQL_97 = "C-SPARQL 0.9.7 (f1866cb), csparql.properties and release notes; measured with an external clock"
_CQELS_1 = "CQELS 1.x (c851d9f), run with CityBench's jar"
_RSPJS = "rsp-js 1.3.5, read and run"
_YASPER = "YASPER (RSP4J c46e0f67), read and run"
_YABENCH = "YABench's oracle (a3acfe2), recomputed from its published files"
_TPF = "Taelman et al. (ESWC 2016)"
_STREAMER = "QueryStreamer.js (eswc2016, 75c56c9)"
_SEPBM = "Murth et al., SEP-BM (2010)"
_REAL_TIME = "Spark 4.3's real-time mode in output mode update, run"
_RSPQL = "RSP-QL (Dell'Aglio et al. 2014): the evaluation time instants are the closes, t0 is given"

_CLOSE_NON_EMPTY = frozenset({Report.WINDOW_CLOSE, Report.NON_EMPTY})
_CHANGE_NON_EMPTY = frozenset({Report.CONTENT_CHANGE, Report.NON_EMPTY})

CSPARQL = Semantics(
    "csparql",
    report=_CLOSE_NON_EMPTY,
    tick=Tick.TUPLE,
    r2s=R2S.RSTREAM,
    r2s_able=frozenset({R2S.RSTREAM}),
    notify_empty=True,
    origin=Origin.SEARCH,
    time_unit=1000,
    static_data=StaticData.BESIDE,
    sources={
        "static_data": "C-SPARQL's FROM: streams and static data are one graph",
        **dict.fromkeys(("report", "tick", "r2s", "notify_empty", "time_unit"), _TABLE_1),
        "r2s_able": _SECTION_4,
        "origin": "CSRBench, section 6.1: t0 depends on the registration, so it is searched",
        "borders": "CSRBench, section 3: [o, c)",
        "partial_head": "CSRBench, section 6.3: reports before the first full window are why Q5 fails",
    },
)

CSPARQL_097 = replace(
    CSPARQL,
    name="csparql-0.9.7",
    tick=Tick.TIME,
    borders=Borders.OPEN_CLOSED,
    partial_head=True,
    origin=Origin.FIRST,
    sources={
        "static_data": CSPARQL.sources["static_data"],
        **dict.fromkeys(("report", "time_unit", "r2s", "r2s_able"), _CSPARQL_97),
        "tick": _CSPARQL_97 + ": Esper's clock ticks every second",
        "borders": _CSPARQL_97 + ": (start, end]",
        "partial_head": _RECORDED + ", Q5: four partial reports at the head",
        "origin": _CSPARQL_97 + ": the first timestamp floored to the tick",
        "notify_empty": _CSPARQL_97 + ": empty results are reported",
    },
)

CSPARQL_097_WALL = replace(
    CSPARQL_097,
    name="csparql-0.9.7-wall",
    clock=Clock.PUT,
    time_unit=100,
    sources={
        **CSPARQL_097.sources,
        "clock": "C-SPARQL 0.9.7 (f1866cb): without an external clock Esper's own stamps a triple when it is put; "
        "YABench's wrapper (a3acfe2) ran it so",
        "time_unit": "Esper's own clock ticks every 100 ms",
    },
)

CQELS = Semantics(
    "cqels",
    report=_CHANGE_NON_EMPTY,
    tick=Tick.BATCH,
    r2s=R2S.ISTREAM,
    r2s_able=frozenset({R2S.ISTREAM}),
    notify_empty=False,
    origin=Origin.SEARCH,
    time_unit=100,
    partial_head=True,
    grain=Grain.ROW,
    static_data=StaticData.BESIDE,
    sources={
        "static_data": "CQELS 1.x has one data set: what STREAM blocks alone do not say matches static data",
        **dict.fromkeys(("r2s", "notify_empty", "time_unit"), _TABLE_1),
        "r2s_able": _SECTION_4,
        "report": f"{_TABLE_1} (content change); non-empty by {_ORACLE}",
        "tick": f"{_TABLE_1} says tuple-driven; {_ORACLE} evaluates once per time of the source, which is batch-driven",
        "origin": "CSRBench, section 6.1",
        "scope": _ORACLE + ": the scope moves by slides",
        "borders": "CSRBench, section 3: [o, c)",
        "partial_head": _ORACLE + ": content is reported from t0 on",
        "grain": _RECORDED + ": one mapping per relation",
    },
)

CQELS_1 = replace(
    CQELS,
    name="cqels-1.x",
    tick=Tick.TUPLE,
    origin=Origin.FIRST,
    borders=Borders.CLOSED,
    scope=Scope.RANGE,
    clock=Clock.ARRIVAL,
    time_unit=1,
    empty_aggregate=EmptyAggregate.NO_ROW,
    sources={
        "static_data": CQELS.sources["static_data"],
        **dict.fromkeys(("tick", "r2s", "r2s_able", "notify_empty", "partial_head"), _CQELS_1),
        "report": _CQELS_1 + ": eager on every arrival",
        "clock": _CQELS_1 + ": System.nanoTime at arrival",
        "scope": _RECORDED + ", Q4: exactly AVG over a pure RANGE, SLIDE ignored",
        "borders": _RECORDED + ", Q4: [t - omega, t]",
        "origin": _CQELS_1 + ": wall clock of the first arrival",
        "grain": _CQELS_1 + ": one row per arriving match",
        "time_unit": "our clock's resolution: the engine has no unit of its own",
        "empty_aggregate": "CQELS 1.0.0, run: nothing is sent until a match arrives",
    },
)

CQELS_1_YABENCH = replace(
    CQELS_1,
    name="cqels-1.x-yabench",
    empty_aggregate=EmptyAggregate.EMPTY_STRING,
    sources={**CQELS_1.sources, "empty_aggregate": _YABENCH + ": its own AVG, <http://yabench/avg>"},
)

SPARQLSTREAM = Semantics(
    "sparqlstream",
    report=_CLOSE_NON_EMPTY,
    tick=Tick.TUPLE,
    r2s=R2S.RSTREAM,
    notify_empty=False,
    origin=Origin.SEARCH,
    time_unit=100,
    static_data=StaticData.BESIDE,
    sources={
        "static_data": "SPARQLstream's FROM NAMED STREAM: streams and static data are one graph here",
        **dict.fromkeys(("report", "tick", "r2s_able", "notify_empty", "time_unit"), _TABLE_1),
        "r2s": _ORACLE,
        "origin": "CSRBench, section 6.1",
        "borders": "CSRBench, section 3: [o, c)",
        "partial_head": _RECORDED + ": the first report is a full window",
    },
)

RSPQL = Semantics(
    "rspql",
    report=frozenset({Report.WINDOW_CLOSE}),
    tick=Tick.TUPLE,
    r2s=R2S.RSTREAM,
    notify_empty=True,
    origin=Origin.FIXED,
    sources={
        "static_data": "RSP-QL (Dell'Aglio et al. 2014): a WINDOW clause evaluates over the window's content alone",
        **dict.fromkeys(("report", "tick", "notify_empty"), _RSPQL),
        "r2s": _RSPQL + "; the query says which, Rstream when it is silent",
        "origin": _RSPQL + "; 0 here",
        "borders": _RSPQL + "; half-open",
        "time_unit": "our clock's resolution",
    },
)

RSPJS = Semantics(
    "rsp-js",
    report=_CLOSE_NON_EMPTY,
    tick=Tick.TUPLE,
    r2s=R2S.RSTREAM,
    r2s_able=frozenset({R2S.RSTREAM}),
    notify_empty=False,
    origin=Origin.FIXED,
    partial_head=True,
    due=Due.LAST,
    grain=Grain.ROW,
    static_data=StaticData.BESIDE,
    sources={
        "static_data": _RSPJS + ": dist/operators/r2r.js puts static data into the store of the window's triples",
        **dict.fromkeys(("r2s_able", "notify_empty", "time_unit"), _RSPJS),
        "report": _RSPJS + ": only window close is coded, empty windows are never reported",
        "tick": _RSPJS + ": an element's arrival drives it",
        "r2s": _RSPJS + ": ISTREAM and DSTREAM are parsed and behave as RSTREAM",
        "origin": _RSPJS + ": t0 = 0",
        "borders": _RSPJS + ": [o, c)",
        "partial_head": _RSPJS + ": ceil(|t - t0| / slide) * slide - width opens windows before t0",
        "due": _RSPJS + ": only the closed window with the largest close",
        "grain": _RSPJS + ": one event per row",
    },
)

YASPER = replace(
    RSPJS,
    name="yasper",
    tick=Tick.ELEMENT,
    grain=Grain.REPORT,
    static_data=StaticData.OUTSIDE,
    sources={
        "r2s": _YASPER,
        "time_unit": _YASPER,
        "report": _YASPER + ": OnWindowClose and NonEmptyContent, as it is run here",
        "tick": _YASPER + ": a graph's arrival drives it",
        "r2s_able": _YASPER + ": Rstream, as it is run here",
        "notify_empty": _YASPER + ": its output stream has solutions only",
        "origin": _YASPER + ": t0 = 0",
        "borders": _YASPER + ": [o, c)",
        "partial_head": _YASPER + ": CSPARQLStreamToRelationOp opens windows before t0",
        "due": _YASPER + ": only the closed window with the largest close",
        "grain": _YASPER + ": the solutions of one evaluation",
    },
)

YABENCH = Semantics(
    "yabench",
    report=frozenset({Report.WINDOW_CLOSE}),
    tick=Tick.BATCH,
    r2s=R2S.RSTREAM,
    notify_empty=True,
    origin=Origin.FIXED,
    borders=Borders.CLOSED,
    partial_head=True,
    static_data=StaticData.BESIDE,
    sources={
        "static_data": _YABENCH + ": one data set",
        "notify_empty": _YABENCH,
        "time_unit": _YABENCH,
        "report": _YABENCH + ": one window per report of the engine",
        "tick": _YABENCH + ": groups of equal time",
        "r2s": _YABENCH + ": all rows",
        "origin": _YABENCH + ": t0 = 0",
        "borders": _YABENCH + ": closed at both ends, although the paper says half-open",
        "partial_head": _YABENCH + ": start = max(0, end - size)",
    },
)

YABENCH_CHANGE = replace(
    YABENCH,
    name="yabench-change",
    report=frozenset({Report.CONTENT_CHANGE}),
    r2s=R2S.ISTREAM,
    notify_empty=False,
    changes=Changes.ARRIVALS,
    grain=Grain.ROW,
    sources={
        **YABENCH.sources,
        "notify_empty": _YABENCH,
        "report": _YABENCH + ": at each new time of the stream",
        "r2s": _YABENCH + ": rows that the last result with new rows did not have",
        "changes": _YABENCH + ": on arrivals only",
        "grain": _YABENCH + ": each expected row is one expected report",
    },
)

FRAGMENTS = Semantics(
    "fragments",
    report=frozenset({Report.EXPIRATION}),
    tick=Tick.TIME,
    r2s=R2S.RSTREAM,
    notify_empty=True,
    origin=Origin.FIXED,
    partial_head=True,
    period=1000,
    static_data=StaticData.BESIDE,
    sources={
        "static_data": _STREAMER + ": facts with and without time are one graph",
        "report": f"{_TPF}, section 6.1: the minimal expiration time of the results calls the streamer again",
        "tick": f"{_TPF}, section 6.1: time alone drives the loop",
        "r2s": f"{_TPF}, section 6.1: the results of one time instant; {_STREAMER}: all rows at each iteration",
        "notify_empty": "our client says that an answer is empty; the prototype sends rows only",
        "origin": "the first evaluation is when the query is asked; 0 here",
        "borders": "model: a fact holds in [initial, final)",
        "partial_head": "a landmark window is never partial",
        "period": f"{_STREAMER}: without an expiration to wait for it asks again after 1000 ms",
        "time_unit": "our clock's resolution",
    },
)

FRAGMENTS_PROTOTYPE = replace(
    FRAGMENTS,
    name="fragments-prototype",
    borders=Borders.OPEN_CLOSED,
    sources={**FRAGMENTS.sources, "borders": f"{_STREAMER}: initial < now && now <= final"},
)

SENS = Semantics(
    "sens",
    report=frozenset({Report.CONTENT_CHANGE}),
    tick=Tick.TIME,
    r2s=R2S.CHANGES,
    r2s_able=frozenset({R2S.ISTREAM, R2S.DSTREAM, R2S.CHANGES}),
    notify_empty=False,
    origin=Origin.FIXED,
    t0=-1,
    borders=Borders.CLOSED,
    partial_head=True,
    answers=Counting.SET,
    grain=Grain.ROW,
    static_data=StaticData.BESIDE,
    sources={
        "static_data": _SEPBM + ": facts are one graph",
        "report": f"{_SEPBM}, section 4.1: each time the knowledge base is modified",
        "tick": f"{_SEPBM}, section 4.1: after each publication; publications are numbered, and time is the number",
        "r2s": f"{_SEPBM}, section 4.1: results that the sets before did not hold (Istream); rows that left beside",
        "r2s_able": "our broker tells both, and a subscriber may leave either unread",
        "notify_empty": f"{_SEPBM}, section 4.1: notifications are generated for new results",
        "origin": "facts stand from when they are published; what is there at 0, before the first, is evaluated too",
        "borders": f"{_SEPBM}, section 4.1: what is published at an instant is evaluated at it",
        "partial_head": "a landmark window is never partial",
        "answers": f"{_SEPBM}, section 4.1: result sets are compared",
        "grain": f"{_SEPBM}, section 2.1: one publication triggers several notifications",
        "time_unit": "publications are numbered one by one",
    },
)

UPDATES = Semantics(
    "updates",
    report=frozenset({Report.CONTENT_CHANGE}),
    tick=Tick.ELEMENT,
    r2s=R2S.RSTREAM,
    r2s_able=frozenset({R2S.RSTREAM}),
    notify_empty=False,
    origin=Origin.FIXED,
    partial_head=True,
    changes=Changes.ARRIVALS,
    content=Counting.UPDATES,
    sources={
        "report": _REAL_TIME + ": a row that comes is answered when it comes",
        "tick": _REAL_TIME + ": a message is an element",
        "r2s": _REAL_TIME + ": an update is a whole row",
        "r2s_able": _REAL_TIME + ": there is no other operator",
        "notify_empty": _REAL_TIME + ": without a row nothing is written",
        "origin": _REAL_TIME + ": windows are counted from a given time; 0 here",
        "borders": _REAL_TIME + ": window() is [o, c)",
        "partial_head": _REAL_TIME + ": a window is updated from its first row on",
        "changes": _REAL_TIME + ": a row that leaves a window updates nothing",
        "content": _REAL_TIME + ": a message is matched by itself, its groups are updated",
        "time_unit": "our clock's resolution",
    },
)

PROFILES: dict[str, Semantics] = {
    profile.name: profile
    for profile in (
        CSPARQL,
        CSPARQL_097,
        CSPARQL_097_WALL,
        CQELS,
        CQELS_1,
        CQELS_1_YABENCH,
        SPARQLSTREAM,
        RSPQL,
        RSPJS,
        YASPER,
        YABENCH,
        YABENCH_CHANGE,
        FRAGMENTS,
        FRAGMENTS_PROTOTYPE,
        SENS,
        UPDATES,
    )
}


class UnknownProfileError(MistakeError, ValueError):
    """An unknown profile name; the message lists the known ones."""


def profile(name: str) -> Semantics:
    """The profile of this name, in any letter case; UnknownProfileError for an unknown one."""
    if (name_ := spelled(name, PROFILES)) is None:
        raise UnknownProfileError(f"no semantics named {name!r}: {offered(name, PROFILES)}")
    return PROFILES[name_]


def makes_choices_of(semantics: Semantics, names: Iterable[str]) -> bool:
    """Whether a semantics equals one of these profiles apart from its name and lateness bound."""
    profiles = map(profile, names)
    # Semantics leaves ``sources`` out of comparisons, so copies with other citations are equal.
    return any(replace(semantics, name=profile.name, lateness=profile.lateness) == profile for profile in profiles)


_UNITS = {1000: "seconds", 100: "hundreds milliseconds"}


def classification() -> list[tuple[str, str, str, str, str]]:
    """CSRBench's table 1, derived from the profiles: rows of (feature, operator, C-SPARQL, CQELS, SPARQLstream)."""
    engines = (CSPARQL, CQELS, SPARQLSTREAM)
    tick = {Tick.TUPLE: "Tuple-driven", Tick.BATCH: "Tuple-driven (judged once per time of the source)"}
    features: list[tuple[str, str, list[str]]] = [
        ("Report strategy", "S2R", [_strategy(engine) for engine in engines]),
        ("Tick", "S2R", [tick[engine.tick] for engine in engines]),
        ("Output operator", "R2S", [_operators(engine) for engine in engines]),
        ("Empty relation notification", "R2S", ["Yes" if engine.notify_empty else "No" for engine in engines]),
        ("Time unit", "", [_UNITS[engine.time_unit] for engine in engines]),
    ]
    return [(feature, operator, *cells) for feature, operator, cells in features]  # type: ignore[misc]


def _strategy(semantics: Semantics) -> str:
    if Report.CONTENT_CHANGE in semantics.report:
        return "Content-change (non-empty, by its oracle's settings)"
    return "Window close and Non-empty content"


def _operators(semantics: Semantics) -> str:
    names = [str(r2s) for r2s in R2S if r2s in semantics.r2s_able]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
