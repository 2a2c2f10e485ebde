"""Bytes kept for absent subscribers: a budget for each principal, over all its channels, in memory and on the disk."""

import sqlite3
from contextlib import closing

import pytest

from streamgauge.servers.broker import recovery
from streamgauge.servers.broker.access import Access, Grant
from streamgauge.servers.broker.limits import LimitError, Limits
from streamgauge.servers.broker.sqlite import SqliteJournal
from streamgauge.servers.http.access import identity
from tests.servers.broker.served import Client
from tests.servers.broker.world import broker, fact, select

LIMIT = 2**16
CHANNELS = 200


def away(made, owner=""):
    """Channels whose subscribers never come, each with a query of its own."""
    for number in range(CHANNELS):
        made.create_channel(f"{owner}{number}", select(f"?x a :Student FILTER (?x != :nobody{number})"), owner=owner)
        made.subscribe(f"{owner}{number}", "absent", lambda: None, None, owner).close()


def publish(made, first, last):
    for number in range(first, last):
        made.publish([fact(f"s{number}{place}", "a", "Student") for place in range(5)])


def kept(made):
    return sum(log.entries.bytes for log in {channel.log for channel in made.channels()})


def stored(folder):
    return sum(file.stat().st_size for file in folder.iterdir() if not file.name.endswith("-wal"))


@pytest.mark.slow
def test_the_journal_and_memory_stop_at_the_budget(tmp_path):
    made = broker(journal=SqliteJournal(tmp_path / "j"), limits=Limits(kept_total=LIMIT))
    away(made)
    publish(made, 0, 60)
    assert kept(made) <= LIMIT
    assert made.budget.bytes("") == kept(made)
    assert made.budget.let_go
    full = stored(tmp_path)
    publish(made, 60, 200)
    assert kept(made) <= LIMIT
    assert stored(tmp_path) <= full + 2**20
    with pytest.raises(LimitError, match=f"kept for absent subscribers reached {LIMIT} bytes: acknowledge"):
        made.subscribe("0", "another", lambda: None)
    back = made.subscribe("0", "absent", lambda: None)
    assert back.missed
    numbers = [notification.number for notification in back.take()]
    assert numbers == list(range(back.missed + 1, 201)) or numbers[-1] == 200
    made.close()
    again = broker(journal=SqliteJournal(tmp_path / "j"), limits=Limits(kept_total=LIMIT))
    assert kept(again) <= LIMIT
    assert again.budget.bytes("") == kept(again)
    again.close()


@pytest.mark.slow
def test_what_channels_have_in_common_is_written_once(tmp_path):
    made = broker(journal=SqliteJournal(tmp_path / "j"))
    for number in range(CHANNELS):
        made.create_channel(f"c{number}", select(f"?x a :Student FILTER (?x != :nobody{number})"))
        made.subscribe(f"c{number}", "absent", lambda: None).close()
    before, published = stored(tmp_path), 0
    for number in range(60):
        facts = [fact(f"a-student-whose-name-is-long-{number}-{place}", "a", "Student") for place in range(10)]
        published += sum(sum(map(len, fact)) for fact in facts)
        made.publish(facts)
    assert stored(tmp_path) - before <= 3 * published
    made.close()
    again = broker(journal=SqliteJournal(tmp_path / "j"))
    for name in ("c0", "c199"):
        back = again.subscribe(name, "absent", lambda: None)
        assert [(notification.number, len(notification.added)) for notification in back.take()] == [
            (n, 10) for n in range(1, 61)
        ]
        back.acknowledge(20)
    for number in range(1, 199):
        again.subscribe(f"c{number}", "absent", lambda: None).acknowledge(30)
    again.publish([fact("new", "a", "Student")])
    again.close()
    journal = SqliteJournal(tmp_path / "j")
    rows = [number for number, _, _ in journal._grouped()]
    assert rows == list(range(21, 62))
    journal.close()
    third = broker(journal=SqliteJournal(tmp_path / "j"))
    assert [notification.number for notification in third.subscribe("c1", "absent", lambda: None).take()] == list(
        range(31, 62)
    )
    for number in range(CHANNELS):
        third.delete_channel(f"c{number}")
    third.close()
    journal = SqliteJournal(tmp_path / "j")
    assert not list(journal._grouped())
    journal.close()


def test_a_log_whose_row_is_lost_goes_on_after_what_it_shared(tmp_path):
    made = broker(journal=SqliteJournal(tmp_path / "j"))
    for number in range(3):
        made.create_channel(f"c{number}", select(f"?x a :Student FILTER (?x != :nobody{number})"))
        made.subscribe(f"c{number}", "absent", lambda: None).close()
    publish(made, 0, 4)
    made.close()
    with closing(sqlite3.connect(tmp_path / "j")) as database, database:
        database.execute("UPDATE log SET last = 0 WHERE number = 2")
    saved = recovery.save(tmp_path / "j", tmp_path / "new")
    assert "the number of log 2's last notification: 4 is taken" in saved.losses
    again = broker(journal=SqliteJournal(tmp_path / "new"))
    assert [notification.number for notification in again.subscribe("c1", "absent", lambda: None).take()] == [
        1,
        2,
        3,
        4,
    ]
    again.close()


def test_acknowledging_makes_room_and_ended_channels_count_no_more():
    made = broker(limits=Limits(kept_total=LIMIT))
    away(made)
    publish(made, 0, 60)
    for number in range(CHANNELS):
        made.delete_channel(str(number))
    assert made.budget.bytes("") == 0
    made.create_channel("new", select("?x a :Student"))
    made.subscribe("new", "somebody", lambda: None).close()


def test_a_principal_leaves_others_their_budget():
    made = broker(limits=Limits(kept_total=LIMIT))
    away(made, "a")
    made.create_channel("b", select("?x a :Student"), owner="b")
    made.subscribe("b", "absent", lambda: None, None, "b").close()
    publish(made, 0, 60)
    assert made.budget.bytes("a") <= LIMIT
    mine = made.subscribe("b", "absent", lambda: None, None, "b")
    assert [notification.number for notification in mine.take()] == list(range(1, 61))
    made.subscribe("b", "another", lambda: None, None, "b").close()


def test_what_is_kept_for_a_token_is_told_with_the_channels():
    made = broker(limits=Limits(kept_total=LIMIT))
    ann, bob = ("the-token-of-ann-1234", "the-token-of-bob-1234")
    away(made, identity(ann))
    publish(made, 0, 60)
    with Client(made, Access([Grant(ann), Grant(bob)])) as ask:
        document = {
            token: ask("GET", "/channels", headers={"Authorization": f"Bearer {token}"}).json()["kept"]
            for token in (ann, bob)
        }
    assert document[bob] == {"bytes": 0, "limit": LIMIT, "refused": ""}
    assert LIMIT // 2 < document[ann]["bytes"] <= LIMIT
    assert f"reached {LIMIT} bytes: acknowledge notifications" in document[ann]["refused"]
