"""What the journal holds is there again: after a close, after kill -9 at any moment; a disk that is full is told."""

import errno
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time

import pytest

from streamgauge.incremental.budget import TooMuchError
from streamgauge.servers import durability
from streamgauge.servers.broker.limits import Limits
from streamgauge.servers.broker.publications import Receipt
from streamgauge.servers.broker.sqlite import SqliteJournal
from streamgauge.servers.sealed.soundness import JournalError
from tests.servers.broker.world import (
    BASE,
    QUERIES,
    RULES,
    answered,
    answers,
    broker,
    by_updates,
    listening,
    select,
    student,
)


def again(path, made=None, **more):
    if made is not None:
        made.close()
    return broker(journal=SqliteJournal(path), **more)


def test_facts_channels_keys_and_unacknowledged_notifications_are_there_again(tmp_path):
    path = tmp_path / "journal"
    made = again(path)
    made.load(BASE)
    told = listening(made, ["students", "named"])
    for n in range(5):
        made.publish(student(n), key=f"k{n}")
    before = told["students"].take()
    told["students"].acknowledge(3)
    made.delete(student(0))
    made.delete_channel("named")
    made = again(path, made)
    assert [channel.name for channel in made.channels()] == ["students"]
    assert set(made.rows("students")[1]) == answers([*BASE, *(t for n in range(1, 5) for t in student(n))])["students"]
    result = made.subscribe("students", "me", lambda: None).take()
    assert [item.number for item in result] == [4, 5, 6]
    assert result[:2] == before[3:]
    assert result[2].removed == (("<urn:t:s0>",),)
    assert made.publish(student(3), key="k3") == Receipt(4, repeated=True)
    assert made.publish(student(7)) == Receipt(7)
    assert made.rows("students")[0] == 7


def test_what_nobody_waits_for_is_not_kept(tmp_path):
    path = tmp_path / "journal"
    made = again(path)
    made.load(BASE)
    made.create_channel("c", select("?x a :Student"))
    for n in range(3):
        made.publish(student(n))
    subscription = made.subscribe("c", "me", lambda: None)
    for n in range(3, 6):
        made.publish(student(n))
    made.unsubscribe("c", "me")
    made.publish(student(6))
    made = again(path, made)
    assert made.rows("c")[0] == 7
    assert made.subscribe("c", "me", lambda: None).take() == []
    made.publish(student(7))
    subscription = made.subscribe("c", "me", lambda: None)
    assert [notification.number for notification in subscription.take()] == [8]


def test_channels_that_ask_the_same_go_on_each_by_itself(tmp_path):
    made = again(tmp_path / "journal")
    made.load(BASE)
    for n, name in enumerate(("one", "two", "three")):
        made.create_channel(name, select("?x a :Student"))
        made.subscribe(name, "me", lambda: None)
        made.publish(student(n))
    made.subscribe("one", "me", lambda: None).acknowledge(2)
    made.delete_channel("two")
    made = again(tmp_path / "journal", made)
    made.publish(student(3))
    results = {channel.name: made.subscribe(channel.name, "me", lambda: None).take() for channel in made.channels()}
    assert {name: [(item.number, item.causes) for item in took] for name, took in results.items()} == {
        "one": [(3, (3,)), (4, (4,))],
        "three": [(1, (3,)), (2, (4,))],
    }
    for name in results:
        made.delete_channel(name)
    made.create_channel("four", select("?x a :Student"))
    made = again(tmp_path / "journal", made)
    assert (made.rows("four")[0], made.listen("four", lambda: None, after=0).take()) == (0, [])


def test_only_so_much_is_kept_for_those_who_do_not_come(tmp_path):
    path = tmp_path / "journal"
    made = again(path, limits=Limits(kept=3))
    made.load(BASE)
    listening(made, ["students"])
    for n in range(9):
        made.publish(student(n))
    made = again(path, made)
    subscription = made.subscribe("students", "me", lambda: None)
    assert [notification.number for notification in subscription.take()] == [7, 8, 9]


@pytest.mark.server
@pytest.mark.parametrize("kills", [5, pytest.param(50, marks=pytest.mark.prove)])
def test_nothing_acknowledged_is_lost_by_kill_9(tmp_path, kills):
    path, draw, first, acknowledged = tmp_path / "journal", random.Random(4), 0, {}
    for _ in range(kills):
        words = [sys.executable, "-m", "tests.servers.broker.killed", str(path)]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            process.stdin.write(f"{first}\n")
            process.stdin.flush()
            lines = [process.stdout.readline()]
            time.sleep(draw.random() / 4)
            process.send_signal(signal.SIGKILL)
            lines += process.stdout.readlines()
        acknowledged |= {int(n): int(number) for n, number in (line.split() for line in lines if line.endswith("\n"))}
        first = max(acknowledged) + 1
    made = again(path)
    for n, number in acknowledged.items():
        assert made.publish(student(n), key=f"k{n}") == Receipt(number, repeated=True)
    more = made._journal.keys()[-1][0].name == f"k{first}"
    facts = [*BASE, *(triple for n in range(first + more) for triple in student(n))]
    now, before = answered(by_updates(RULES, facts)), answers(BASE)
    for name in QUERIES:
        assert set(made.rows(name)[1]) == now[name]
        result = made.subscribe(name, "me", lambda: None, after=0).take()
        assert [item.number for item in result] == list(range(1, len(result) + 1))
        rows = [row for item in result for row in item.added]
        assert len(rows) == len(set(rows))
        assert set(rows) == now[name] - before[name]


def test_a_heuristic_is_not_durable(tmp_path):
    with pytest.raises(ValueError, match="puts evaluations off"):
        broker("graphss", journal=SqliteJournal(tmp_path / "journal"))


def test_a_file_that_is_no_journal_is_refused(tmp_path):
    path = tmp_path / "journal"
    path.write_text("not a database, but long enough to be read as one" * 50)
    with pytest.raises(JournalError, match="no journal can be kept here"):
        SqliteJournal(path)
    with pytest.raises(JournalError, match="no journal can be kept here"):
        SqliteJournal(tmp_path / "nowhere" / "journal")


def test_two_brokers_do_not_share_a_journal(tmp_path):
    one = again(tmp_path / "journal")
    with pytest.raises(JournalError, match="another process has it open"):
        SqliteJournal(tmp_path / "journal", patience=0)
    one.close()


def limited(journal, more):
    (pages,) = journal._database.execute("PRAGMA page_count").fetchone()
    journal._database.execute(f"PRAGMA max_page_count = {pages + more}")


def many(first, last):
    return [triple for n in range(first, last) for triple in student(n)]


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["incremental", "reevaluate"])
def test_what_a_full_disk_refused_is_nowhere_and_with_room_it_goes_on(tmp_path, strategy):
    journal = SqliteJournal(tmp_path / "journal")
    made = broker(strategy, journal=journal)
    made.load(BASE)
    told = listening(made, QUERIES)
    made.publish(student(1), key="first")
    before = {name: set(made.rows(name)[1]) for name in QUERIES}, set(made.facts()), made.number
    heard = {name: item.take() for name, item in told.items()}
    limited(journal, 0)
    for graph in (many(2, 400), [*many(2, 300), *student(1)]):
        with pytest.raises(JournalError, match=r"could not be written: the disk is full \(ENOSPC\): make room"):
            made.update(graph, student(1)[:2], key="refused")
        assert ({name: set(made.rows(name)[1]) for name in QUERIES}, set(made.facts()), made.number) == before
        assert all(item.take() == [] for item in told.values())
        assert "disk is full" in made.trouble
    limited(journal, 1000)
    made.evaluate()
    assert made.trouble == made.fault == ""
    assert made.publish(many(2, 30), key="refused") == Receipt(2)
    now = answers([*BASE, *student(1), *many(2, 30)])
    assert {name: set(made.rows(name)[1]) for name in QUERIES} == now
    for name, item in told.items():
        (change, *more) = item.take() or [None]
        assert not more
        assert (set(change.added) if change else set()) == now[name] - before[0][name]
        assert len(heard[name]) <= 1
    made = again(tmp_path / "journal", made)
    assert {name: set(made.rows(name)[1]) for name in QUERIES} == now
    assert made.publish(student(1), key="first") == Receipt(1, repeated=True)


def test_a_query_that_cost_too_much_because_of_a_refused_publication_goes_on(tmp_path):
    journal = SqliteJournal(tmp_path / "journal")
    made = broker(journal=journal, limits=Limits(effort=1000))
    made.load(BASE)
    made.create_channel("pairs", select("?x a :Student . ?y a :Student FILTER(?x != ?y)"))
    subscription = made.subscribe("pairs", "me", lambda: None)
    made.publish(many(1, 4))
    (pages,) = journal._database.execute("PRAGMA page_count").fetchone()
    journal._database.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(JournalError, match="disk is full"):
        made.publish(many(4, 1500))
    assert subscription.over is None
    limited(journal, 1000)
    made.publish(student(4))
    assert len(made.rows("pairs")[1]) == 12
    assert [len(notification.added) for notification in subscription.take()] == [6, 6]


class Refusing:
    """A cursor of a database on a disk that takes nothing."""

    def __init__(self, database):
        self._database = database

    def close(self):
        pass

    def execute(self, statement, *values):
        if statement.startswith("BEGIN"):
            return self._database.execute(statement)
        raise sqlite3.OperationalError("database or disk is full")


def test_a_channel_that_ended_while_nothing_could_be_written_leaves_the_journal_before_its_name_is_taken(tmp_path):
    journal = SqliteJournal(tmp_path / "journal")
    made = broker(journal=journal, limits=Limits(effort=1000))
    made.load(BASE)
    pairs = select("?x a :Student . ?y a :Student FILTER(?x != ?y)")
    made.create_channel("pairs", pairs)
    (pages,) = journal._database.execute("PRAGMA page_count").fetchone()
    journal._database.execute(f"PRAGMA max_page_count = {pages}")
    create = made._strategy.create

    def refuse(*what):
        raise TooMuchError("no")

    made._strategy.create = refuse
    with pytest.raises(JournalError, match="disk is full"):
        made.publish(many(4, 1500))
    made._strategy.create = create
    assert made.channels() == []
    limited(journal, 1000)
    made.create_channel("pairs", pairs)
    made.publish(many(1, 4))
    made = again(tmp_path / "journal", made)
    assert (made.rows("pairs")[0], len(made.rows("pairs")[1])) == (1, 6)


def test_an_acknowledgement_that_a_full_disk_did_not_take_does_no_harm(tmp_path, monkeypatch):
    journal = SqliteJournal(tmp_path / "journal")
    made = broker(journal=journal)
    made.load(BASE)
    told = listening(made, ["students"])
    made.publish(student(1))
    told["students"].acknowledge(1)
    monkeypatch.setattr(journal, "_cursor", Refusing(journal._database))
    made.close()
    made = again(tmp_path / "journal")
    assert [notification.number for notification in made.subscribe("students", "me", lambda: None).take()] == [1]


@pytest.mark.parametrize(
    ("code", "words"),
    [(errno.ENOSPC, "disk is full"), (errno.EDQUOT, "quota is used up"), (errno.EIO, "input/output error")],
)
def test_each_refusal_of_a_disk_has_its_words(tmp_path, monkeypatch, code, words):
    def refuse(*what, **more):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(durability, "TemporaryFile", refuse)
    assert f"({errno.errorcode[code]})" in durability.explained(tmp_path, "disk I/O error", full=False)
    assert words in durability.explained(tmp_path, "disk I/O error", full=False)
    assert words in durability.explained(tmp_path, f"{tmp_path}: {os.strerror(code)}", full=False)
    assert words in durability.explained(tmp_path, os.strerror(errno.EIO), full=False), "a short write is told as EIO"
