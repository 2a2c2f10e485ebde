"""What an evaluator does not know of a semantics it refuses by name: fields and values that are added later too."""

from dataclasses import dataclass, fields, replace
from enum import StrEnum

import pytest

from streamgauge import engines
from streamgauge.engines import live
from streamgauge.engines.spark.honoured import MICRO_BATCHES, REAL_TIME
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.semantics import Changes, Counting, Report, Semantics, Tick
from streamgauge.oracle.expected.reports import SPARK_HONOURED, refuse_spark
from streamgauge.oracle.judging.tables import COUNTED
from streamgauge.query import parse_sparql
from streamgauge.semantics.definition import refuse
from streamgauge.semantics.honoured import DEFINED, SHARED, not_honoured
from streamgauge.semantics.profiles import PROFILES, RSPQL
from streamgauge.semantics.refusal import RefusedError

QUERY = ContinuousQuery(parse_sparql("SELECT ?s { ?s <urn:p> ?o }"), (StreamWindow("urn:s", Window(2000, 2000)),))


@dataclass(frozen=True, slots=True)
class LaterSemantics(Semantics):
    """The semantics of a later version: it has one field more."""

    late_limit: int | None = None


class LaterScope(StrEnum):
    """A value of a later version."""

    SESSION = "session"


LATER = LaterSemantics("later", lateness=5000, late_limit=1000)


@pytest.mark.parametrize("name", engines.names())
def test_every_engine_refuses_a_field_that_it_does_not_know(name: str):
    reason = engines.load(name).refuse(QUERY, LATER)
    assert reason is not None
    if name in ("live", "spark"):
        assert reason.startswith("late_limit = 1000: ")
    if name in ("live", "spark"):
        assert engines.load(name).refuse(QUERY, LaterSemantics("later")) is None


def test_the_oracles_evaluators_refuse_a_field_that_they_do_not_know():
    with pytest.raises(RefusedError, match="late_limit = 1000"):
        refuse(QUERY, LATER)
    unknown = "Spark does not know this field of a semantics, leave it out"
    assert refuse_spark(QUERY, LATER) == f"late_limit = 1000: {unknown}"
    element = {"report": frozenset({Report.CONTENT_CHANGE}), "tick": Tick.ELEMENT, "changes": Changes.ARRIVALS}
    updates = replace(RSPQL, content=Counting.UPDATES, partial_head=True, **element)
    assert refuse_spark(QUERY, updates) == "elements that are matched by themselves (content = updates)"
    refuse(QUERY, LaterSemantics("later"))
    assert refuse_spark(QUERY, LaterSemantics("later")) is None


LISTS = {
    "definition": DEFINED,
    "live": live.HONOURED,
    "spark": MICRO_BATCHES,
    "real-time": REAL_TIME,
    "oracle on spark": SPARK_HONOURED,
    "judge that counts rows": COUNTED,
}


@pytest.mark.parametrize("name", LISTS)
def test_every_list_names_all_fields_and_no_value_that_is_added_later(name: str):
    own = {field.name for field in fields(Semantics)} - {"name", "sources"}
    assert set(LISTS[name]) == own
    scope = LaterSemantics("later", scope=LaterScope.SESSION)  # type: ignore[arg-type]
    others = dict.fromkeys(own)
    reason = not_honoured(scope, {**others, "scope": LISTS[name]["scope"]}, "this")
    assert reason == "scope = session: this does not honour this value of a semantics, take another one"


def test_a_value_that_is_added_later_stands_in_the_lists_of_those_that_honour_it():
    assert sum(len(values or ()) for values in SHARED.values()) == 49


def test_the_definition_knows_the_profiles():
    assert [profile.name for profile in PROFILES.values() if not_honoured(profile, DEFINED, "the definition")] == []
