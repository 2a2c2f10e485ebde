"""The core of the broker: numbers, keys, merging, slow subscribers, limits, what it refuses."""

from threading import Thread

import pytest

from streamgauge.query import QueryError
from streamgauge.servers.broker.channels import ExistingChannelError, UnknownChannelError
from streamgauge.servers.broker.limits import BusyError, LimitError, Limits
from streamgauge.servers.broker.publications import FailedError, Receipt
from tests.servers.broker.world import BASE, broker, fact, listening, select, student


def added(notifications):
    return [notification.added for notification in notifications]


def test_publishing_what_is_there_changes_nothing():
    made = broker()
    told = listening(made, ["one"])["one"]
    graph = [fact("s1", "memberOf", "d1"), fact("s1", "a", "Person")]
    assert made.publish(graph) == Receipt(1)
    assert made.publish(graph) == Receipt(2)
    assert made.delete([fact("s2", "a", "Person")]) == Receipt(3)
    (result,) = told.take()
    assert (result.number, result.causes, result.added, result.removed) == (1, (1,), (("<urn:t:s1>",),), ())


def test_a_repeated_key_is_acknowledged_and_does_nothing():
    made = broker()
    made.load(BASE)
    told = listening(made, ["students"])["students"]
    assert made.publish(student(1), key="k") == Receipt(1)
    made.delete(student(1))
    assert made.publish(student(1), key="k") == Receipt(1, repeated=True)
    assert [bool(notification.added) for notification in told.take()] == [True, False]


@pytest.mark.parametrize("name", ["incremental", "reevaluate"])
def test_publications_that_wait_are_taken_together_and_acknowledged_one_by_one(name):
    made = broker(name)
    made.load(BASE)
    told = listening(made, ["students"])["students"]
    waiting = [made.submit(student(n), ()) for n in range(3)] + [made.submit((), student(0))]
    assert made.waiting == 4
    assert not any(item.done() for item in waiting)
    assert made.step() == 4
    assert [item.result() for item in waiting] == [Receipt(n) for n in range(1, 5)]
    result = told.take()
    if name == "incremental":
        assert [item.causes for item in result] == [(1,), (2,), (3,), (4,)]
        assert result[3].removed == (("<urn:t:s0>",),)
    else:
        assert [(item.causes, set(item.added)) for item in result] == [
            ((1, 2, 3, 4), {("<urn:t:s1>",), ("<urn:t:s2>",)})
        ]


def test_the_same_key_twice_in_one_step_takes_effect_once():
    made = broker()
    one, two = made.submit(student(1), (), "k"), made.submit(student(1), (), "k")
    made.step()
    assert (one.result(), two.result()) == (Receipt(1), Receipt(1, repeated=True))


def test_threads_publish_at_once_and_every_row_is_told_once():
    made = broker()
    made.load(BASE)
    told = listening(made, ["students"])["students"]

    def publish(first):
        for n in range(first, 200, 8):
            made.publish(student(n))

    threads = [Thread(target=publish, args=(first,)) for first in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    result = told.take()
    assert sorted(row for item in result for row in item.added) == sorted((f"<urn:t:s{n}>",) for n in range(200))
    assert [item.number for item in result] == list(range(1, 201))
    assert sorted(item.causes[0] for item in result) == list(range(1, 201))


def test_a_subscriber_resumes_after_what_it_acknowledged_or_where_it_says():
    made = broker()
    made.load(BASE)
    made.create_channel("c", select("?x a :Student"))
    one = made.subscribe("c", "me", lambda: None)
    for n in range(4):
        made.publish(student(n))
    assert [notification.number for notification in one.take()] == [1, 2, 3, 4]
    one.acknowledge(2)
    one.acknowledge(1)
    one.close()
    again = made.subscribe("c", "me", lambda: None)
    assert [notification.number for notification in again.take()] == [3, 4]
    assert [notification.number for notification in made.subscribe("c", "me", lambda: None, after=0).take()] == [
        1,
        2,
        3,
        4,
    ]
    assert made.subscribe("c", "other", lambda: None).take() == []
    made.unsubscribe("c", "me")
    assert made.subscribe("c", "me", lambda: None).take() == []


def test_a_slow_subscriber_is_left_and_may_resume():
    made = broker(limits=Limits(kept=5, lag=3))
    made.load(BASE)
    slow = listening(made, ["students"])["students"]
    for n in range(8):
        made.publish(student(n))
    assert "too slow" in slow.over.why
    assert slow.missed == 3
    assert [notification.number for notification in slow.take()] == [4, 5, 6, 7, 8]


def test_many_subscribers_are_each_told_once():
    made = broker()
    made.load(BASE)
    made.create_channel("c", select("?x a :Student"))
    woken = []
    all_ = [made.subscribe("c", f"s{n}", lambda n=n: woken.append(n)) for n in range(2000)]
    made.publish(student(1))
    assert sorted(woken) == list(range(2000))
    assert [len(item.take()) for item in all_] == [1] * 2000


def test_a_channel_begins_with_its_answer_and_ends_with_a_word():
    made = broker()
    made.load((*BASE, *student(1)))
    assert made.create_channel("c", select("?x a :Student ; :name ?n")) == ("x", "n")
    assert made.rows("c") == (0, [("<urn:t:s1>", '"B1"')])
    subscription = made.subscribe("c", "me", lambda: None)
    made.delete_channel("c")
    assert subscription.over.why == "the channel was deleted"
    for item in (made.delete_channel, made.rows, lambda name: made.subscribe(name, "me", lambda: None)):
        with pytest.raises(UnknownChannelError, match="there is no channel c"):
            item("c")
    made.publish(student(2))


def test_channels_that_ask_the_same_have_numbers_of_their_own():
    made = broker()
    made.load(BASE)
    made.create_channel("one", select("?x a :Student"))
    one = made.subscribe("one", "me", lambda: None)
    made.publish(student(1))
    made.create_channel("two", select("?x   a   :Student ."))
    two = made.listen("two", lambda: None)
    for n in (2, 3):
        made.publish(student(n))
    assert [(notification.channel, notification.number) for notification in one.take()] == [
        ("one", 1),
        ("one", 2),
        ("one", 3),
    ]
    assert [(notification.channel, notification.number, *notification.added) for notification in two.take()] == [
        ("two", 1, ("<urn:t:s2>",)),
        ("two", 2, ("<urn:t:s3>",)),
    ]
    assert (made.rows("one")[0], made.rows("two")[0]) == (3, 2)
    for after, missed in ((0, 0), (1, 0), (99, 0)):
        again = made.listen("two", lambda: None, after)
        assert ([notification.number for notification in again.take()], again.missed) == (
            [2] if after == 1 else [1, 2],
            missed,
        )
    made.delete_channel("one")
    assert (one.over.why, two.over) == ("the channel was deleted", None)
    made.create_channel("one", select("?x a :Student"))
    made.publish(student(4))
    assert ([notification.number for notification in two.take()], made.channel("one").number) == ([3], 1)
    assert one.take() == []
    for name in ("one", "two"):
        made.delete_channel(name)
    assert made.publish(student(5)) == Receipt(5)


def test_nothing_is_loaded_past_channels():
    made = broker()
    listening(made, ["students"])
    with pytest.raises(ValueError, match="publish instead"):
        made.load(BASE)


def test_what_is_beyond_a_limit_is_refused_by_name():
    limits = Limits(channels=1, query_text=100, rows=1, graph=7, waiting=1, subscribers=1)
    made = broker(limits=limits)
    made.load((*BASE, *student(1), *student(2)))
    with pytest.raises(LimitError, match="more than 7 triples"):
        made.publish(BASE)
    with pytest.raises(LimitError, match="more than 100 characters"):
        made.create_channel("c", select("?x a :Student") + " " * 100)
    with pytest.raises(LimitError, match="more than 1 rows"):
        made.create_channel("c", select("?x a :Student"))
    made.create_channel("c", select("?x a :Nobody"))
    with pytest.raises(LimitError, match="1 channels"):
        made.create_channel("d", select("?x a :Nobody"))
    with pytest.raises(ExistingChannelError, match="channel c exists already"):
        made.create_channel("c", select("?x a :Nobody"))
    made.subscribe("c", "me", lambda: None)
    with pytest.raises(LimitError, match="1 subscribers"):
        made.subscribe("c", "you", lambda: None)
    made.submit(student(3), ())
    with pytest.raises(BusyError, match="1 publications wait"):
        made.submit(student(4), ())


@pytest.mark.parametrize("name", ["incremental", "reevaluate", "stringrs", "graphss"])
def test_no_more_facts_than_the_limit(name):
    made = broker(name, limits=Limits(facts=3))
    graph = [fact(f"s{number}", "memberOf", "d1") for number in range(4)]
    with pytest.raises(LimitError, match="more than 3 facts"):
        made.load(graph)
    made.publish(graph[:2])
    with pytest.raises(LimitError, match="delete some first"):
        made.publish(graph[2:])
    assert set(made.facts()) & set(graph) == set(graph[:2])
    assert made.publish(graph[2:3]) == Receipt(2)
    made.delete(graph[:2])
    assert made.publish(graph[2:]) == Receipt(4)
    assert set(made.facts()) & set(graph) == set(graph[2:])


@pytest.mark.parametrize(
    "query",
    [
        "SELECT",
        "SELECT * { { SELECT ?s { ?s ?p ?o } LIMIT 1 } }",
        "DESCRIBE <a:a>",
        "INSERT DATA { <a:a> <a:b> <a:c> }",
    ],
)
def test_a_query_that_is_wrong_or_not_kept_makes_no_channel(query):
    made = broker()
    with pytest.raises((QueryError, ValueError)):
        made.create_channel("c", query)
    assert made.channels() == []


class Full:
    """A strategy that cannot publish."""

    explicit = 0

    def publish(self, publications, now):
        raise OSError("no space left on device")


def test_when_a_step_fails_each_that_waited_hears_so_once():
    made = broker(limits=Limits(facts=2))
    made._strategy = Full()
    waiting = [made.submit((fact("s1", "a", "Person"),), (), "k"), made.submit(student(1), ())]
    with pytest.raises(OSError, match="no space"):
        made.step()
    for item in waiting:
        with pytest.raises(OSError, match="no space"):
            item.result(0)


def test_a_broker_that_failed_takes_nothing_more():
    made = broker()
    made._strategy = Full()
    with pytest.raises(OSError, match="no space"):
        made.publish(student(1))
    with pytest.raises(FailedError, match="no space left on device: start the broker again"):
        made.publish(student(1))
