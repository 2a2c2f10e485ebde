"""What is due: all at once on Spark and one by one from scratch are the same, whatever is published in which order."""

import random

import pytest

from streamgauge.formats.stream import elements, to_table
from streamgauge.servers.broker.contract import Publication
from streamgauge.suites.sepbm import ConfigurationError, spans
from streamgauge.suites.sepbm.distributed import due, history, states
from streamgauge.suites.sepbm.local import closed, due_in_memory, sequential
from tests.suites.sepbm.campus import drawn


def as_sets(result):
    """By publication and channel, in the order in which they are given; every notification says something."""
    listed = [(entry.publication, entry.channel, frozenset(entry.added), frozenset(entry.removed)) for entry in result]
    assert all(added or removed for _, _, added, removed in listed)
    assert all(len(entry.added) == len(set(entry.added)) for entry in result)
    return {entry[:2]: entry[2:] for entry in listed}


def assert_most_speak(made, expected):
    """Nobody is a member of :nowhere, and the patterns of some others have no row in some draws."""
    speaking = {channel for _, channel in expected}
    assert "one-nowhere" not in speaking
    assert len(speaking) > 2 / 3 * len(made.channels)


@pytest.mark.parametrize("seed", [1, *(pytest.param(n, marks=pytest.mark.prove) for n in range(2, 40))])
def test_at_once_in_memory_is_one_by_one(tmp_path, seed):
    made = drawn(tmp_path, seed, 120)
    order = random.Random(seed).sample(range(1, 121), 120)
    expected = as_sets(list(sequential(made, order)))
    assert as_sets(due_in_memory(made, order)) == expected
    assert_most_speak(made, expected)


@pytest.mark.prove
@pytest.mark.parametrize("seed", range(1, 12))
def test_at_once_is_one_by_one(spark, tmp_path, seed):
    made = drawn(tmp_path, seed, 120)
    order = random.Random(seed).sample(range(1, 121), 120)
    expected = as_sets(list(sequential(made, order)))
    assert as_sets(due(spark, made, order)) == expected
    assert_most_speak(made, expected)


@pytest.mark.prove
def test_in_the_sequence_s_order_unless_another_is_given(spark, tmp_path):
    made = drawn(tmp_path, 3, 6, ("named", "near"))
    assert as_sets(due(spark, made)) == as_sets(list(sequential(made))) == as_sets(list(sequential(made, range(1, 7))))
    assert as_sets(due_in_memory(made)) == as_sets(due_in_memory(made, range(1, 7))) == as_sets(list(sequential(made)))


def test_an_order_has_all_publications(tmp_path):
    made = drawn(tmp_path, 3, 6)
    for order in ([1, 2, 3], [1, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5]):
        with pytest.raises(ConfigurationError, match="each of the 6 publications must occur once"):
            due_in_memory(made, order)


def test_the_history_of_facts_is_what_holds_after_each_publication(spark, tmp_path):
    made = drawn(tmp_path, 4, 6)
    results = list(history(spark, made))
    assert list(elements(to_table(results))) == results
    facts = set(made.base())
    for state, item in enumerate((Publication(0), *made.sequence())):
        facts = facts - set(item.removed) | set(item.added)
        held = {
            triple
            for element in results
            if element.time <= state and (element.until is None or state < element.until)
            for triple in element.added
        }
        assert held == set(closed(made.rules(), facts).triples)
    assert max(element.until or 0 for element in results) <= states(made)


def test_what_stands_and_what_does_not_change_nothing():
    one, two = (("<urn:a>", "<urn:p>", f'"{n}"') for n in range(2))
    sequence = (
        Publication(1, (one,), (two,)),
        Publication(2, (one,)),
        Publication(3, (), (one,)),
        Publication(4, (two, one), (one,)),
        Publication(5, (), (two, one)),
        Publication(6, (), (one,)),
    )
    assert spans(sequence, [one]) == {one: [(0, 2), (4, 4)], two: [(4, 4)]}
    assert spans(sequence, []) == {one: [(1, 2), (4, 4)], two: [(4, 4)]}
    assert spans(sequence[:2], [two]) == {two: [(0, 0)], one: [(1, 2)]}
