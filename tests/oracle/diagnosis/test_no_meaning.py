"""Models that have no meaning are left out; an error of the code itself ends the diagnosis."""

from dataclasses import replace

import pytest

from streamgauge.model.semantics import Counting
from streamgauge.model.terms import XSD
from streamgauge.oracle.diagnosis.diagnose import diagnose
from streamgauge.oracle.diagnosis.faulty import Simulator
from streamgauge.oracle.diagnosis.search import Search
from streamgauge.semantics.evaluate import Snapshot
from streamgauge.semantics.refusal import RefusedError
from tests.oracle.diagnosis.faults.recordings import best, diagnosed, elements, recording, with_rows

TEXT = "1: s p 1. | 2: s p 2. | 3: t p 4. | 12: s p 3. | 14: t p 5."
QUERY = "SELECT ?s ?v { ?s <urn:p> ?v }"


def test_an_error_of_the_evaluator_is_not_taken_for_a_model_without_meaning(monkeypatch):
    def broken(self, contents, loaded=None):
        raise ValueError("zip() argument 2 is shorter than argument 1")

    search = Search(recording(TEXT, QUERY), elements(TEXT))
    monkeypatch.setattr(Snapshot, "rows", broken)
    for evaluated in (search.reports, search.comes_out):
        with pytest.raises(ValueError, match="argument 2 is shorter"):
            evaluated(search.base)


def test_a_bag_under_graph_has_no_reports():
    run = recording(TEXT, QUERY)
    (window,) = run.header.query.windows
    query = replace(run.header.query, windows=(replace(window, name="urn:w"),))
    search = Search(replace(run, header=replace(run.header, query=query)), elements(TEXT))
    case = search.base.under(content=Counting.BAG)
    with pytest.raises(RefusedError, match="over a content that is a bag is not defined"):
        search.simulator.solver(case)
    assert search.reports(case) == ()
    assert not search.comes_out(case)
    assert len(search.reports(search.base)) == 6


@pytest.mark.parametrize("kind", ["in teger", "integer"])
def test_numbers_of_any_size_and_answers_of_any_datatype_are_diagnosed(kind):
    """One of 5,000 digits, that an engine would send as an integer, and a datatype that is not an IRI."""
    text = TEXT.replace("p 4", f"p 1{'0' * 5000}.5")
    run = recording(text, QUERY)
    wrong = replace(run.answers[0], added=(("<urn:s>", f'"7"^^<{XSD}{kind}>'),))
    result = diagnose(replace(run, answers=(wrong, *run.answers[1:])), elements(text))
    assert not result.exact


def test_numbers_are_cut_off_where_they_are_sent_as_integers():
    text = "1: s p 1.5. | 2: s p -2.5. | 3: t p 4.0. | 12: s p 0.25."
    run = recording(text, QUERY)
    whole = [[("<urn:s>", 1), ("<urn:s>", -2), ("<urn:t>", 4)], [("<urn:s>", 0)]]
    rows = [[(s, f'"{number}"^^<{XSD}integer>') for s, number in report] for report in whole]
    assert "numbers as xsd:integer" in best(diagnosed(with_rows(run, [*rows, *[[]] * 4]), text))


def test_an_error_is_raised_again_for_each_reader(monkeypatch):
    run = recording(TEXT, QUERY)
    search = Search(run, elements(TEXT))

    def refused(*_):
        raise RefusedError("no")
        yield

    monkeypatch.setattr(Simulator, "_due_reports", refused)
    due = search.simulator.due(replace(search.base, t0=1))
    for _ in range(2):
        with pytest.raises(RefusedError):
            list(due)
