"""Runs as series: what was asked tells series apart, what was found does not."""

from dataclasses import replace
from itertools import permutations

import pytest

from streamgauge.report.document import named, summary
from streamgauge.report.series import Series, series_of
from streamgauge.report.windows import window_tables
from tests.report import build


def run(seed: int = 1, repetition: int = 1, triples: int = 400, **changes: object) -> build.Judged:
    workload = {"name": "weather", "stations": 50, "seed": seed, "triples": triples, **changes.pop("workload", {})}
    return build.right(repetition=repetition, workload=workload, **changes)


def names(one: Series) -> list[str]:
    return [named(one, judged[0].header) for judged in one.runs]


@pytest.mark.parametrize("order", [*permutations(range(3))])
def test_seeds_are_repetitions_of_one_series_whatever_was_found(order) -> None:
    runs = [run(1, triples=1740), run(2, triples=1751), run(3, triples=1740)]
    (one,) = series_of([runs[place] for place in order])
    assert one.label == "live as csparql"
    assert names(one) == [f"live as csparql, repetition {number} (seed {number})" for number in (1, 2, 3)]


def test_seeds_and_repetitions_have_a_name_each() -> None:
    (one,) = series_of([run(seed, number, 100 * seed) for seed in (7, 30) for number in (1, 2)])
    assert [name.removeprefix("live as csparql, ") for name in names(one)] == [
        "repetition 1 (seed 7)",
        "repetition 2 (seed 30)",
        "repetition 3 (seed 7)",
        "repetition 4 (seed 30)",
    ]


def test_repetitions_are_shown_by_seed_where_seeds_were_repeated() -> None:
    series = series_of([run(seed, number, 100 * seed) for seed in (7, 30) for number in (1, 2)])
    assert [(line.group.removeprefix("live as csparql, "), line.label[-8:]) for line in summary(series)] == [
        ("seed 7", "(seed 7)"),
        ("seed 7", "(seed 7)"),
        ("seed 30", "(seed 30)"[-8:]),
        ("seed 30", "(seed 30)"[-8:]),
    ]
    assert [table.name.partition("repetition ")[2] for table in window_tables(series)] == [
        "1 (seed 7)", "3 (seed 7)", "2 (seed 30)", "4 (seed 30)",
    ]  # fmt: skip
    assert {line.group for line in summary(series_of([run(seed) for seed in (1, 2, 3)]))} == {""}


def test_repetitions_of_one_seed_keep_their_numbers() -> None:
    (one,) = series_of([run(repetition=number) for number in (5, 2)])
    assert names(one) == ["live as csparql, repetition 2", "live as csparql, repetition 5"]


HOT = {"TEMP": "50"}
OTHER = replace(build.CSPARQL, time_unit=100)
SERIES = [
    ({"engine": "spark"}, "spark as csparql", "live as csparql"),
    ({"semantics": build.CQELS}, "live as cqels", "live as csparql"),
    ({"semantics": OTHER}, "live as csparql, time unit 100", "live as csparql, time unit 1000"),
    ({"options": {"strategy": "b"}}, "live as csparql, strategy b", "live as csparql"),
    ({"parameters": HOT}, "live as csparql, TEMP 50", "live as csparql"),
    ({"experiment": "e2"}, "live as csparql, experiment e2", "live as csparql"),
    ({"workload": {"stations": 60}}, "live as csparql, stations 60", "live as csparql, stations 50"),
    ({"factor": None}, "live as csparql, pace unpaced", "live as csparql, pace 1"),
    ({"query_text": "ASK {}"}, "live as csparql", "live as csparql (2)"),
]


@pytest.mark.parametrize(("changes", "label", "others"), SERIES, ids=[label for _, label, _ in SERIES])
def test_all_that_is_asked_tells_series_apart(changes, label, others) -> None:
    first, second = series_of([run(**changes), run(), run(2, triples=9)])
    assert (first.label, second.label) == (label, others)
    assert (len(first.runs), len(second.runs)) == (1, 2)
