"""Drawn comparisons of computed numbers: coarse readings are the same by both evaluators, and bound the exact ones."""

from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from functools import partial
from random import Random

import pytest

from streamgauge.model import algebra as al
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.report import DueReport
from streamgauge.model.terms import Row
from streamgauge.oracle.expected.reports import Look
from streamgauge.oracle.judging.bounds import bounded
from streamgauge.oracle.judging.compare import computed_columns
from streamgauge.oracle.judging.intervals import OpenError
from streamgauge.oracle.judging.undecided import Possibilities, _named
from streamgauge.query.printer import sparql
from streamgauge.query.traversal import every_pattern
from streamgauge.semantics.arrivals import Arrival
from streamgauge.semantics.evaluate import Snapshot
from streamgauge.semantics.profiles import RSPQL
from tests.notation import STREAM
from tests.oracle.judging.computed import drawn
from tests.sparql.pyoxigraph.opinion import SecondOpinion

DUE = DueReport(5, ())
WINDOWS = (StreamWindow(STREAM, Window(5, 5)),)
IN_SUITE, TO_PROVE, PART = 60, 30_060, 500


def checked(seed: int) -> set[str]:
    """One case; what it shows: ``asked`` of pyoxigraph, ``certain``, ``few`` rows in doubt looked at alone."""
    form, triples = drawn(Random(seed))
    query, contents = ContinuousQuery(form, WINDOWS), ((Arrival(STREAM, 0, None, triples),),)
    forms = bounded(form)
    if forms is None:
        return set()
    shown, answers, computed = set(), [], computed_columns(form)
    for each in (form, *forms):
        snapshot = Snapshot(replace(query, form=each))
        exact = snapshot.rows(contents)
        answers.append(exact)
        found = SecondOpinion(each).rows((triples,))
        if found is not None:
            shown.add("asked")
            bags = [Counter(map(partial(_stored, columns=computed), rows)) for rows in (exact, found)]
            assert bags[0] == bags[1], f"seed {seed}: {sparql(each)}\n{triples}"
    return shown | readings(seed, query, lambda due: contents, answers)


def _stored(row: Row, columns: Collection[int]) -> Row:
    """A row without its computed numbers: a sum depends on an order that nobody states."""
    return tuple(term for place, term in enumerate(row) if place not in columns)


def readings(seed: int, query: ContinuousQuery, look: Look, answers: list[tuple[Row, ...]]) -> set[str]:
    """The exact readings lie between the coarse ones, and are the same of few rows as of all."""
    possible, computed = Possibilities(lambda: look, query, RSPQL), computed_columns(query.form)
    rows, loose, tight = answers
    told = f"seed {seed}: {sparql(query.form)}"
    certain = possible.certain(DUE)
    try:
        every = _named(possible.of(DUE), rows, computed)
    except OpenError:
        assert not certain, told
        return set()
    kinds = {type(each) for each in every_pattern(query.form.pattern)}
    if not computed and not kinds & {al.LeftJoin, al.Distinct, al.Group}:
        assert Counter(tight) <= Counter(every.tight) <= Counter(every.loose) <= Counter(loose), told
    if not certain:
        return set()
    few = possible.near(DUE, rows, computed, loose, tight)
    assert (Counter(few.loose), Counter(few.tight)) == (Counter(every.loose), Counter(every.tight)), told
    alone = possible._narrowed().possible and Counter(loose) != Counter(tight)
    return {"certain", "few"} if alone else {"certain"}


@pytest.mark.slow
def test_drawn() -> None:
    shown = Counter(each for seed in range(IN_SUITE) for each in checked(seed))
    assert min(shown[each] for each in ("asked", "certain", "few")) > IN_SUITE / 50, shown


@pytest.mark.prove
@pytest.mark.parametrize("first", range(IN_SUITE, TO_PROVE, PART))
def test_many_drawn(first: int) -> None:
    for seed in range(first, first + PART):
        checked(seed)
