"""Trains: boards in iRail's shape, what is renewed and what changes, static data."""

from collections import Counter
from itertools import groupby, pairwise

import pytest

from streamgauge.formats import stream as stream_table
from streamgauge.formats.canonical import Canonical, parse_term
from streamgauge.workloads import load
from streamgauge.workloads.parameters import ParameterError

TRAINS = load("trains")
SMALL = {"stations": 3, "per_hour": 40, "ahead": "30m", "update": "5s", "duration": "30s"}


def elements(**given):
    return list(stream_table.elements(TRAINS.plan(7, **given).table()))


def static(**given):
    return list(zip(*TRAINS.static_plan(7, **given).table().to_pydict().values(), strict=True))


def test_another_seed_gives_other_rows():
    assert not TRAINS.plan(8, **SMALL).table().equals(TRAINS.plan(7, **SMALL).table())


def test_each_update_says_all_that_is_on_the_boards_until_the_next():
    result = elements(**SMALL)
    assert [element.sequence for element in result] == list(range(len(result)))
    sizes = {time: len(list(group)) for time, group in groupby(result, key=lambda element: element.time)}
    assert list(sizes) == [0, 5000, 10_000, 15_000, 20_000, 25_000, 30_000]
    assert all(abs(size - 60) <= 3 for size in sizes.values())
    assert {element.until - element.time for element in result} == {5000}
    assert {tuple(triple[1].split("#")[1] for triple in element.added) for element in result} == {
        ("delay>", "platform>")
    }


def test_by_default_a_board_is_that_of_the_recorded_station():
    result = elements(duration="10m", update="1m")
    boards = Counter(element.time for element in result)
    assert 18 <= sum(boards.values()) / len(boards) <= 21


@pytest.mark.slow
def test_as_many_delays_and_platforms_change_as_is_said():
    given = {"per_hour": 600, "ahead": "1h", "duration": "60s", "update": "2s", "platform_changes": 0.05}
    result = elements(delay_changes=0.2, **given)
    by_departure = {}
    for element in result:
        by_departure.setdefault(element.added[0][0], []).append([triple[2] for triple in element.added])
    pairs = [pair for item in by_departure.values() for pair in pairwise(item)]
    delays, platforms = (sum(a[i] != b[i] for a, b in pairs) / len(pairs) for i in (0, 1))
    assert 0.14 < delays < 0.22  # a delay of 0 is not shortened
    assert 0.04 < platforms < 0.06
    still = elements(delay_changes=0, **{**given, "platform_changes": 0})
    assert len({triple for element in still for triple in element.added}) == 2 * len({e.added[0][0] for e in still})


def test_boards_move_on_faster():
    slow, fast = (elements(duration="10m", update="1m", speedup=n) for n in (1, 60))
    seen = [len({element.added[0][0] for element in item}) for item in (slow, fast)]
    assert seen[1] > 5 * seen[0]


def test_static_data_has_every_departure_that_is_spoken_of():
    facts = static(**SMALL)
    assert len(set(facts)) == len(facts)
    predicates = Counter(predicate.split("#")[1][:-1] for _, predicate, _ in facts)
    assert set(predicates) == {"hasDeparture", "departureTime", "headSign", "routeLabel"}
    assert len(set(predicates.values())) == 1
    spoken = {element.added[0][0] for element in elements(**SMALL)}
    assert spoken == {subject for subject, predicate, _ in facts if "headSign" in predicate}
    assert spoken == {obj for _, predicate, obj in facts if "hasDeparture" in predicate}


def test_the_papers_size():
    given = {"per_hour": 100, "ahead": "1h", "duration": "0s"}
    assert abs(len(elements(**given)) * 2 - 200) <= 4
    read = [fact for fact in static(**given) if "hasDeparture" not in fact[1]]
    assert abs(len(read) - 300) <= 6


@pytest.mark.parametrize(
    ("dynamic", "renewed"),
    [("none", 0), ("delay", 1), ("routeLabel, delay", 2), ("delay,platform,departureTime,headSign,routeLabel", 5)],
)
def test_what_is_dynamic_is_chosen(dynamic, renewed):
    result = elements(**SMALL, dynamic=dynamic)
    assert {len(element.added) for element in result} == ({renewed} if renewed else set())
    assert len({predicate for _, predicate, _ in static(**SMALL, dynamic=dynamic)}) == 6 - renewed


def test_terms_are_canonical():
    given = {**SMALL, "dynamic": "delay,departureTime", "delayed": 1.0}
    objects = {triple[2] for element in elements(**given) for triple in element.added}
    objects |= {fact[2] for fact in static(**given)}
    canonical = Canonical()
    assert {canonical.term(parse_term(term)) for term in objects} == objects


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"stations": 0}, "stations is 0"),
        ({"per_hour": 4000}, "per_hour is 4000: it must be at most 3600"),
        ({"dynamic": "colour"}, "dynamic is 'colour': 'colour' is not a property of a departure"),
        ({"delay_changes": 2}, "delay_changes is 2"),
    ],
)
def test_wrong_parameters_are_named(given, named):
    with pytest.raises(ParameterError, match=named):
        TRAINS.plan(1, **given)
