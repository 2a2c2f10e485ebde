"""The diagnosis: right runs are not explained, faults injected by other code are named, and the proof holds."""

from collections import Counter
from dataclasses import replace
from itertools import count
from random import Random

import pytest

from streamgauge.model.semantics import CQL, R2S, Borders, Changes, Grain, Scope, Tick
from streamgauge.model.verdict import Judgement
from streamgauge.oracle.diagnosis.diagnose import diagnose, explained, worked
from streamgauge.oracle.diagnosis.faults import load
from streamgauge.oracle.diagnosis.faulty import Simulator
from streamgauge.oracle.diagnosis.models import Case, Stream
from streamgauge.oracle.expected.reports import definition
from streamgauge.oracle.judging.oracle import JudgingRules, check
from streamgauge.semantics.definition import expected
from streamgauge.semantics.profiles import CQELS, RSPQL
from streamgauge.semantics.refusal import RefusedError
from tests.notation import stream
from tests.oracle.diagnosis.injectors.draw import SEMANTICS, draw, draw_one, right_world
from tests.oracle.diagnosis.injectors.injected import ENGINE, REPORTS
from tests.oracle.diagnosis.injectors.shapes import SHAPES
from tests.oracle.diagnosis.injectors.world import told
from tests.oracle.runs import TEXT, right_run

ELEMENTS = stream(TEXT)
CLOSE = replace(RSPQL, name="close")
FAULTS = [each.__name__ for each in (*ENGINE, *REPORTS)]
SHORT = {
    "distinct_rows": 88,
    "empty_windows": 67,
    "on_match_only": 33,
    "full": 9,
    "pure_range": 28,
    "free_side": 105,
    "coarse_times": 28,
    "merged": 28,
    "jitter": 21,
    "swapped": 98,
    "capped": 35,
    "element_lost": 28,
    "borders": 63,
    "empty_answers": 91,
    "lost_head": 21,
    "partial_head": 35,
    "aggregate": 77,
    "size_off": 42,
    "first_only": 11,
    "slide_off": 9,
    "rounded": 29,
    "kept_side": 47,
}
"""Seeds of cases with a short search, where that of the first case takes over a second (``prove`` has a thousand)."""


def names(diagnosis):
    return [" + ".join(part.name for part in model) for model in diagnosis.models]


def drawn(count, first=0, most=10**9):
    """Cases of one fault and of two, in turn, until there are so many."""
    result, seed = [], first
    while len(result) < count and seed < most:
        case = draw(seed, 1 + seed % 2)
        result += [case] if case is not None else []
        seed += 1
    return result


def explains(case):
    """Whether the faults of a case, or a model with no more parts, are named; and the verdict is never right."""
    first = case.world.elements[0].time
    verdict = check(case.run, definition(case.world.elements), first, JudgingRules())
    assert verdict.judgement is Judgement.WRONG, case.names
    diagnosis = diagnose(case.run, case.world.elements)
    assert diagnosis.differs > 0, case.names
    parts = [part for model in diagnosis.models for part in model]
    assert all(part.name and part.sentence.endswith(".") for part in parts), case.names
    return diagnosis.exact and len(diagnosis.models[0]) <= len(case.names)


def rate(cases):
    missed = [case for case in cases if not explains(case)]
    share = 1 - len(missed) / len(cases)
    print(f"\n{share:.1%} of {len(cases):,} injected cases explained; missed: {Counter(case.names for case in missed)}")
    return share


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_an_injected_fault_is_named(fault):
    case = draw_one(fault, SHORT.get(fault, 0))
    assert explains(case), case


@pytest.mark.parametrize("seed", [27, *(pytest.param(seed, marks=pytest.mark.prove) for seed in (81, 133, 235))])
def test_two_injected_faults_are_named(seed):
    case = next(case for case in (draw(each, 2) for each in count(seed)) if case is not None and len(case.names) == 2)
    assert explains(case), case.names


@pytest.mark.prove
@pytest.mark.timeout(7200)
def test_a_thousand_injected_faults_are_named():
    cases = drawn(1000, first=100_000)
    assert {name for case in cases for name in case.names} == set(FAULTS)
    assert rate(cases) >= 0.99


@pytest.mark.parametrize(("changes", "reports"), [(Changes.BOTH, 3), (Changes.ARRIVALS, 2)])
def test_a_content_that_only_loses_triples_has_a_report_where_evictions_count(changes, reports):
    """At 6, b comes again, and a has left."""
    text = "0: a p o. | 3: b p o. | 6: b p o."
    changing = replace(CQELS, changes=changes, scope=Scope.RANGE, grain=Grain.REPORT, notify_empty=True)
    run = right_run(replace(changing, r2s=R2S.RSTREAM, r2s_able=frozenset(CQL)), text, window=(5, 5))
    assert len(run.answers) == reports
    diagnosis = diagnose(run, stream(text))
    assert (diagnosis.models, diagnosis.differs, diagnosis.distance) == ((), 0, 0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_an_untouched_run_is_not_explained(seed):
    case = None
    while case is None:
        case = draw(seed, 0)
        seed += 1000
    diagnosis = diagnose(case.run, case.world.elements)
    assert (diagnosis.models, diagnosis.differs, diagnosis.distance) == ((), 0, 0)


@pytest.mark.parametrize("seed", range(30))
def test_without_a_fault_the_simulator_is_the_definition_and_the_injectors_world(seed):
    rng = Random(seed)
    world = right_world(rng, rng.choice(SHAPES), rng.choice(SEMANTICS))
    semantics = replace(
        world.semantics,
        tick=rng.choice(list(Tick)),
        borders=rng.choice(list(Borders)),
        scope=rng.choice(list(Scope)),
        r2s=rng.choice(CQL),
        r2s_able=frozenset(CQL),
        time_unit=1000,
    )
    world = replace(world, semantics=semantics)
    case = Case(world.query(), semantics, Stream(world.elements), world.advanced_to, world.t0)
    simulated = [(report.instant, Counter(report.rows)) for report in Simulator(case.query, case.stream).reports(case)]
    due = expected(world.elements, world.query(), semantics, world.advanced_to, world.t0)
    assert simulated == [(report.due.instant, Counter(report.rows)) for report in due]
    assert simulated == [(instant, Counter(rows)) for instant, rows in told(world)]


def test_what_comes_out_is_proved_and_worked():
    query = {"sparql": "SELECT ?s ?o { ?s <urn:p> ?o }", "named": False}
    run = right_run(CLOSE, **query)
    borders = right_run(replace(CLOSE, borders=Borders.OPEN_CLOSED), **query)
    explanation = explained(replace(run, answers=borders.answers), ELEMENTS)
    assert explanation.diagnosis.exact
    assert explanation.diagnosis.differs == explanation.diagnosis.reports == 4
    assert "borders = (o, c]" in names(explanation.diagnosis)
    window = worked(explanation)
    assert window.instant == 5
    assert Counter(window.recorded) == Counter(window.model) == Counter(borders.answers[0].added)
    assert Counter(window.expected) == Counter(run.answers[0].added)


@pytest.mark.slow
def test_nothing_fits_answers_from_elsewhere():
    run = right_run(CLOSE)
    wrong = (("<urn:never>",), ("<urn:nor this>",))
    answers = (replace(run.answers[0], added=wrong), *run.answers[1:])
    explanation = explained(replace(run, answers=answers), ELEMENTS)
    diagnosis = explanation.diagnosis
    assert not diagnosis.exact
    assert (diagnosis.differs, diagnosis.distance, diagnosis.models) == (1, 1, ())
    window = worked(explanation)
    assert (window.instant, window.scope, window.model) == (5, (0, 5), None)
    assert (Counter(window.expected), Counter(window.recorded)) == (Counter(run.answers[0].added), Counter(wrong))


@pytest.mark.slow
def test_the_closest_is_named_with_its_distance():
    text, query = "SELECT ?s ?o { ?s <urn:p> ?o }", {"sparql": "SELECT ?s ?o { ?s <urn:p> ?o }", "named": False}
    run = right_run(replace(CLOSE, borders=Borders.OPEN_CLOSED), window=(4, 2), **query)
    assert run.header.query_text == text
    wrong = replace(run.answers[2], added=(("<urn:never>", "<urn:never>"),))
    declared = replace(run.header, semantics=CLOSE)
    diagnosis = diagnose(replace(run, header=declared, answers=(*run.answers[:2], wrong, *run.answers[3:])), ELEMENTS)
    assert not diagnosis.exact
    assert diagnosis.distance == 1 < diagnosis.differs
    assert "borders = (o, c]" in names(diagnosis)[0]


def test_the_recorded_rows_of_a_row_grained_engine_are_read_report_by_report():
    semantics = replace(CQELS, time_unit=1, t0=0)
    run = right_run(semantics, named=False)
    assert semantics.grain is Grain.ROW
    first = run.answers[0]
    diagnosis = diagnose(replace(run, answers=(first, *run.answers)), ELEMENTS)
    assert any("sent twice" in name or "rows repeated" in name or "stale" in name for name in names(diagnosis))


def test_an_engine_that_says_nothing():
    run = right_run(CLOSE, named=False)
    assert names(diagnose(replace(run, answers=()), ELEMENTS)) == ["nothing reported"]


def test_too_large_a_run_is_refused():
    run = right_run(CLOSE)
    many = replace(ELEMENTS[0], added=ELEMENTS[0].added * 200_001)
    with pytest.raises(RefusedError, match="200,001 triples"):
        diagnose(run, (many,))


def test_progress_is_told():
    run = right_run(CLOSE, named=False)
    steps = []
    diagnose(replace(run, answers=run.answers[1:]), ELEMENTS, lambda done, of: steps.append((done, of)))
    assert steps
    assert all(done <= of for done, of in steps)
    assert [done for done, _ in steps] == sorted(done for done, _ in steps)


def test_every_file_of_the_folder_proposes_faults():
    assert len(load()) >= 31
    assert {"border_jitter", "side_never_purged", "side_unconstrained", "null_aggregate"} <= set(load())


@pytest.mark.slow
@pytest.mark.parametrize("spoil", ["nothing fits", "one fault fits"])
def test_progress_never_goes_back_and_never_says_that_all_is_done(spoil):
    """More is tried as long as nothing fits: the share counts that from the beginning."""
    text = " | ".join(f"{t}: s{t % 3} p {t % 7}." for t in range(0, 40, 2))
    run = right_run(RSPQL, text=text, window=(10, 10), advance=40)
    rows = (("<urn:none>",),) if spoil == "nothing fits" else run.answers[0].added
    run = replace(run, answers=(*run.answers[:2], replace(run.answers[2], added=rows), *run.answers[3:]))
    shares: list[float] = []
    diagnose(run, stream(text), lambda done, of: shares.append(done / of))
    assert len(shares) > 10
    assert shares == sorted(shares)
    assert shares[-1] < 1
