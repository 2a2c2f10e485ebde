"""The conformance cases: read strictly, written in a language that keeps them, covering what engines choose."""

from collections import Counter
from dataclasses import replace

import pytest

from streamgauge.model.query import Window
from streamgauge.model.semantics import R2S, Borders, Clock, EmptyAggregate, Report, Tick
from streamgauge.query import parse
from streamgauge.semantics.profiles import PROFILES
from streamgauge.suites.conformance.cases import OWN, CaseError, Scale, asked, load, read, text
from streamgauge.suites.conformance.certificate import features

CASES = load()
GOOD = """[[case]]
name = "n"
why = "w"
source = "s"
stream = "1: a p b."
window = [5, 5]
advance = 5
expected = [[5, "a"]]
"""


def test_a_case_is_read_as_it_is_written():
    (case,) = read(GOOD, "theme")
    assert (case.theme, case.name, case.why, case.source, case.advance) == ("theme", "n", "w", "s", 5)
    assert case.expected == ((5, (("<urn:a>",),)),)
    assert case.semantics.name == OWN
    assert (case.query.window.size, case.semantics.tick) == (5, Tick.ELEMENT)


@pytest.mark.parametrize(
    ("line", "instead", "words"),
    [
        ('why = "w"\n', "", "theme.toml, case 'n': why is missing"),
        ("advance = 5\n", "advance = 5\ncolour = 3\n", "case 'n': colour is unknown: the fields are name, why"),
        ("window = [5, 5]\n", "", "either window"),
        ("window = [5, 5]\n", "window = [0, 5]\n", "window size is 0 ms"),
        ("window = [5, 5]\n", "windows = [{ window = [5, 5], size = 3 }]\n", "size is unknown"),
        ("advance = 5\n", 'advance = 5\ntick = "often"\n', "semantics.tick is 'often': expected one of"),
        ('stream = "1: a p b."\n', 'stream = "a p b."\n', "is not an element"),
        ("advance = 5\n", 'advance = 5\nquery = "SELECT"\n', "case 'n': "),
        ('name = "n"\n', "name = n\n", "theme.toml: Invalid"),
        ("[[case]]\n", "[other]\n", "only .*case.* tables"),
    ],
)
def test_a_case_that_is_wrong_names_file_case_and_field(line, instead, words):
    with pytest.raises(CaseError, match=words):
        read(GOOD.replace(line, instead), "theme")


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_case_is_the_same_query_in_the_language_that_engines_are_given(case):
    written, dialect = text(case.query, None)
    again = parse(written, dialect).with_static(case.query.static)
    assert again == replace(case.query, name=again.name)


def test_a_dialect_that_cannot_say_a_case_refuses_it():
    several = next(case for case in CASES if case.theme == "windows")
    with pytest.raises(ValueError, match="cannot merge unnamed windows"):
        text(several.query, "cqels")


def test_every_choice_of_the_model_has_a_case():
    own = [case.semantics for case in CASES]
    assert {strategy for semantics in own for strategy in semantics.report} == set(Report)
    assert {semantics.tick for semantics in own} == set(Tick)
    assert {case.query.r2s or case.semantics.r2s for case in CASES} == set(R2S)
    assert {semantics.borders for semantics in own} == set(Borders)
    assert {semantics.empty_aggregate for semantics in own} == set(EmptyAggregate)
    assert {window.window.kind for case in CASES for window in case.query.windows} == {"time", "count", "landmark"}


def test_every_feature_that_a_certificate_tells_has_a_case():
    counts = Counter(feature for task in asked(CASES, (), Scale()) for feature in features(task))
    words = {value for dimension, value in counts if dimension == "SPARQL"}
    assert words == {
        "SELECT", "ASK", "CONSTRUCT", "FILTER", "OPTIONAL", "UNION", "MINUS", "BIND", "VALUES", "GRAPH", "EXISTS",
        "GROUP BY and aggregates", "DISTINCT", "timestamp()", "static data",
    }  # fmt: skip
    assert {value for dimension, value in counts if dimension == "windows"} >= {
        "tumbling",
        "sliding",
        "several",
        "named",
    }


def test_every_case_is_asked_under_every_profile_that_gives_it_a_meaning():
    tasks = list(asked(CASES, None, Scale()))
    by = Counter(task.profile for task in tasks)
    assert by[OWN] == len(CASES)
    assert set(by) == {OWN, *PROFILES}
    assert len({task.name for task in tasks}) == len(tasks)
    late = [task for task in tasks if task.case.theme == "late" and task.profile == "yabench"]
    assert late
    assert all(task.semantics.lateness is not None for task in late)


def test_an_operator_that_a_profile_lacks_is_not_asked_for():
    keyword = next(case for case in CASES if case.query.r2s is R2S.ISTREAM)
    assert {task.profile for task in asked((keyword,), None, Scale())}.isdisjoint({"csparql", "rsp-js"})


def test_a_unit_is_what_engine_and_semantics_need():
    case = next(case for case in CASES if case.name == "sliding windows overlap")
    of = {task.profile: task for task in asked((case,), None, Scale(unit=100, pace=250))}
    assert of[OWN].case.query.window.size == 400
    assert of["csparql"].case.query.window.size == 4000
    assert of["csparql"].case.advance == 6000
    for task in of.values():
        arrival = task.semantics.clock is not Clock.APPLICATION
        assert task.factor == (1.0 if arrival else None)
        assert task.case.query.window.slide % task.semantics.time_unit == 0
        assert not arrival or task.case.stream[0].time % 250 == 0
    assert of["csparql-0.9.7-wall"].case.query.window == Window(2000, 1000)
    assert of["cqels-1.x"].case.query.window == Window(2250, 1250)


def test_scaled_times_are_all_of_them():
    text = GOOD.replace(
        "advance = 5\n", 'advance = 5\nt0 = 2\nlateness = 1\ntime_unit = 2\nperiod = 3\nreport = ["periodic"]\n'
    )
    (case,) = read(text.replace("1: a p b.", "1..4: a p b."), "theme")
    ten = case.scaled(10)
    chosen = ten.semantics
    assert (chosen.t0, chosen.lateness, chosen.time_unit, chosen.period) == (20, 10, 20, 30)
    assert (ten.advance, ten.stream[0].time, ten.stream[0].until) == (50, 10, 40)
    assert ten.query.window == replace(case.query.window, size=50, slide=50)
