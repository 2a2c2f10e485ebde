"""Notifications of every strategy against answers from scratch: exactly for exact ones, at the end for heuristics."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.servers.broker.evaluation import Settings
from streamgauge.servers.broker.strategies import begin, strategies
from tests.examples import examples
from tests.servers.broker.world import (
    BASE,
    QUERIES,
    RULES,
    Clock,
    answers,
    broker,
    listening,
    select,
    student,
)

PIECES = [*BASE, *(triple for n in range(5) for triple in student(n))]
pieces = st.lists(st.sampled_from(PIECES), max_size=6)
changes = st.lists(
    st.tuples(
        st.one_of(pieces, st.builds(student, st.integers(0, 4))), pieces, st.sets(st.sampled_from(sorted(QUERIES)))
    ),
    min_size=1,
    max_size=8,
)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["incremental", "reevaluate"])
@examples(12, prove=400)
@given(changes)
def test_notifications_are_the_differences_of_answers_from_scratch(name, changes):
    made = broker(name)
    made.load(BASE)
    facts, subscribed, shown = set(BASE), {}, {}
    for added, removed, wanted in changes:
        for gone in set(subscribed) - wanted:
            made.delete_channel(gone)
            del subscribed[gone]
        for new in sorted(wanted - set(subscribed)):
            made.create_channel(new, select(QUERIES[new]))
            subscribed[new] = made.subscribe(new, "me", lambda: None)
            shown[new] = answers(facts)[new]
            assert set(made.rows(new)[1]) == shown[new]
        receipt = made.update(added, removed)
        facts = (facts - set(removed)) | set(added)
        now = answers(facts)
        for channel, subscription in subscribed.items():
            notifications = subscription.take()
            assert [item.causes for item in notifications] == [(receipt.number,)] * len(notifications)
            assert len(notifications) == (now[channel] != shown[channel])
            came = {row for item in notifications for row in item.added}
            went = {row for item in notifications for row in item.removed}
            assert (came, went) == (now[channel] - shown[channel], shown[channel] - now[channel])
            shown[channel] = now[channel]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["stringrs", "graphss"])
def test_heuristics_tell_early_what_they_can_and_miss_nothing_at_the_end(name):
    clock = Clock()
    made = broker(name, clock)
    made.load(BASE)
    subscribed = listening(made)
    early = dict.fromkeys(QUERIES, 0)
    told = {channel: set() for channel in QUERIES}
    facts = set(BASE)
    before = answers(facts)
    for n in range(40):
        made.publish(student(n, department=1 + n % 2))
        facts |= set(student(n, department=1 + n % 2))
        for channel, subscription in subscribed.items():
            for notification in subscription.take():
                early[channel] += len(notification.added) if notification.causes == (n + 1,) else 0
                assert not told[channel] & set(notification.added)
                told[channel] |= set(notification.added)
    assert early["students"] > 20
    assert early["named"] > 20
    made.evaluate()
    for channel, subscription in subscribed.items():
        for notification in subscription.take():
            told[channel] |= set(notification.added)
    after = answers(facts)
    assert told == {channel: after[channel] - before[channel] for channel in QUERIES}


def test_a_channel_that_is_guessed_well_is_evaluated_at_intervals():
    clock = Clock()
    made = broker("graphss", clock)
    made.load(BASE)
    subscribed = listening(made, ["students", "whole"])
    for n in range(2 * Settings().least):
        made.publish(student(n))
    subscribed["students"].take()
    strange = (student(99)[1], student(99)[2], student(99)[4])
    made.publish(strange)
    assert subscribed["students"].take() == []
    clock.now += Settings().interval
    made.publish(student(98))
    result = subscribed["students"].take()
    assert {row for item in result for row in item.added} == {("<urn:t:s98>",), ("<urn:t:s99>",)}


def test_a_deletion_is_told_at_once():
    made = broker("graphss")
    made.load((*BASE, *student(1)))
    subscribed = listening(made, ["students"])
    made.delete(student(1))
    (told,) = subscribed["students"].take()
    assert told.removed == (("<urn:t:s1>",),)


@pytest.mark.parametrize("name", ["graphss", "stringrs"])
def test_a_row_that_only_a_deletion_adds_is_notified_and_teaches_nothing(name):
    made, fact = broker(name), ("<urn:t:a>", "<urn:t:p>", "<urn:t:b>")
    made.load((fact, ("<urn:t:a>", "<urn:t:q>", "<urn:t:b>")))
    made.create_channel("lone", "SELECT ?s { ?s <urn:t:q> ?o FILTER NOT EXISTS { ?s <urn:t:p> ?o } }")
    subscription = made.subscribe("lone", "me", lambda: None)
    made.delete((fact,))
    assert [notification.added for notification in subscription.take()] == [(("<urn:t:a>",),)]


def test_there_are_four_and_others_are_refused():
    assert strategies() == ("graphss", "incremental", "reevaluate", "stringrs")
    with pytest.raises(ValueError, match="there is no strategy guess: there are graphss, incremental"):
        begin("guess", RULES)


@pytest.mark.parametrize("name", ["reevaluate", "graphss"])
def test_only_a_select_is_evaluated_again(name):
    with pytest.raises(ValueError, match="only a SELECT"):
        broker(name).create_channel("c", "ASK { ?s ?p ?o }")
