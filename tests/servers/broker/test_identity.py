"""Keys and names belong to tokens: another's are refused or independent, across restarts too; quotas are of a token."""

import json
import sqlite3
from contextlib import closing

import pytest

from streamgauge.servers.broker.access import OPERATIONS, Access, Grant
from streamgauge.servers.broker.channels import ForeignNameError
from streamgauge.servers.broker.delivery import Webhook
from streamgauge.servers.broker.limits import BusyError, LimitError, Limits
from streamgauge.servers.broker.publications import Receipt
from streamgauge.servers.broker.registry import OPERATOR
from streamgauge.servers.broker.sqlite import SqliteJournal
from streamgauge.servers.http.access import identity
from streamgauge.servers.http.retries import KeyReuseError
from streamgauge.servers.sealed.soundness import JournalError
from tests.servers.broker.served import GRAPH, OTHER, TURTLE, Client
from tests.servers.broker.test_access import converse
from tests.servers.broker.world import BASE, broker, select, student

ANN, BOB = "the-token-of-ann-1234", "the-token-of-bob-1234"
ACCESS = Access([Grant(ANN), Grant(BOB)])
STUDENTS = select("?x a :Student")
UPDATE = {"Content-Type": "application/sparql-update"}
ME = "/channels/c/subscribers/me"


def by(token, key=None, **headers):
    keyed = {} if key is None else {"Idempotency-Key": key}
    return {**TURTLE, "Authorization": f"Bearer {token}", **keyed, **headers}


@pytest.fixture
def ask():
    made = broker()
    made.load(BASE)
    made.create_channel("c", STUDENTS)
    with Client(made, ACCESS) as client:
        yield client


def rows(ask):
    document = ask("GET", "/channels/c/rows", headers=by(ANN)).json()["results"]["bindings"]
    return {row["x"]["value"] for row in document}


def test_another_tokens_key_is_independent(ask):
    assert not ask("POST", "/publish", content=GRAPH, headers=by(ANN, "1")).json()["repeated"]
    assert not ask("POST", "/publish", content=OTHER, headers=by(BOB, "1")).json()["repeated"]
    assert not ask("POST", "/delete", content=OTHER, headers=by(ANN, "2")).json()["repeated"]
    assert rows(ask) == {"urn:t:s1"}
    assert ask("POST", "/publish", content=GRAPH, headers=by(ANN, "1")).json() == {"publication": 1, "repeated": True}
    assert ask("POST", "/publish", content=OTHER, headers=by(BOB, "1")).json() == {"publication": 2, "repeated": True}


@pytest.mark.parametrize(
    ("path", "body", "headers"),
    [
        ("/publish", OTHER, {}),
        ("/publish", GRAPH + " ", {}),
        ("/publish", GRAPH, {"Content-Type": "application/n-triples"}),
        ("/delete", GRAPH, {}),
        ("/update", "INSERT DATA { <urn:t:s1> a <urn:t:Student> }", UPDATE),
    ],
)
def test_a_key_with_another_operation_or_body_is_refused(ask, path, body, headers):
    ask("POST", "/publish", content=GRAPH, headers=by(ANN, "k"))
    if "n-triples" in str(headers):
        body = GRAPH.replace(" a ", " <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> ")
    said = ask("POST", path, content=body, headers={**by(ANN, "k"), **headers})
    assert (said.status_code, "was used for another request" in said.json()["error"]) == (422, True)
    assert (rows(ask), ask.broker.number) == ({"urn:t:s1"}, 1)


def test_a_key_that_is_used_twice_in_one_step_is_refused_to_the_second():
    made = broker()
    one, two, three = (made.submit(student(n), (), "k") for n in (1, 2, 1))
    made.step()
    assert (one.result(), three.result()) == (Receipt(1), Receipt(1, repeated=True))
    with pytest.raises(KeyReuseError):
        two.result()


def test_what_was_refused_leaves_its_key_free(ask):
    ask.broker.limits = Limits(facts=ask.broker._strategy.explicit)
    assert ask("POST", "/publish", content=GRAPH, headers=by(ANN, "k")).status_code == 422
    ask.broker.limits = Limits()
    assert ask("POST", "/publish", content=OTHER, headers=by(ANN, "k")).status_code == 200


def again(path, made=None, **more):
    if made is not None:
        made.close()
    return broker(journal=SqliteJournal(path), **more)


def test_keys_and_names_survive_a_restart_with_their_owners(tmp_path):
    made = again(tmp_path / "j")
    made.create_channel("c", STUDENTS)
    with Client(made, ACCESS) as ask:
        ask("POST", "/publish", content=GRAPH, headers=by(ANN, "k"))
        assert ask("PUT", ME, headers=by(ANN)).status_code == 204
    made = again(tmp_path / "j")
    with Client(made, ACCESS) as ask:
        assert ask("POST", "/publish", content=GRAPH, headers=by(ANN, "k")).json()["repeated"]
        assert ask("POST", "/publish", content=OTHER, headers=by(ANN, "k")).status_code == 422
        assert not ask("POST", "/publish", content=OTHER, headers=by(BOB, "k")).json()["repeated"]
        assert ask("PUT", ME, headers=by(BOB)).status_code == 403
        assert ask("DELETE", ME, headers=by(ANN)).status_code == 204
        assert ask("PUT", ME, headers=by(BOB)).status_code == 204
    made = again(tmp_path / "j")
    assert made.channel("c").owners == {"me": identity(BOB)}
    made.close()


def test_a_token_is_not_in_the_journal(tmp_path):
    made = again(tmp_path / "j")
    made.create_channel("c", STUDENTS)
    with Client(made, ACCESS) as ask:
        ask("POST", "/publish", content=GRAPH, headers=by(ANN, "k"))
        ask("PUT", ME, headers=by(ANN))
        ask("PUT", "/channels/d", content=STUDENTS, headers=by(ANN))
    assert not [file for file in tmp_path.iterdir() if ANN.encode() in file.read_bytes()]


def test_a_journal_of_another_version_is_refused(tmp_path):
    with closing(sqlite3.connect(tmp_path / "j")) as database:
        database.executescript("CREATE TABLE fact (s TEXT); PRAGMA user_version = 1;")
    with pytest.raises(JournalError, match="its version is 1, this reads 3: name another file"):
        again(tmp_path / "j")


def test_the_keys_of_a_token_are_let_go_when_it_has_too_many_and_no_others(tmp_path):
    limits = Limits(keys=2)
    made = again(tmp_path / "j", limits=limits)
    with Client(made, ACCESS) as ask:
        for n in range(4):
            ask("POST", "/publish", content=GRAPH, headers=by(ANN, f"k{n}"))
        ask("POST", "/publish", content=GRAPH, headers=by(BOB, "k"))
    journal = SqliteJournal(tmp_path / "j")
    known = [(owner, name) for (owner, name, _), _ in list(journal.keys())]
    assert known == [(identity(ANN), "k2"), (identity(ANN), "k3"), (identity(BOB), "k")]
    assert journal.numbers()[0] == 5
    journal.close()


def test_a_name_belongs_to_the_token_that_made_it(ask):
    assert ask("PUT", ME, headers=by(ANN)).status_code == 204
    ask("POST", "/publish", content=GRAPH, headers=by(ANN))
    tries = {
        "acknowledge": ask("PUT", f"{ME}?acknowledged=1", headers=by(BOB)),
        "resume": ask("GET", "/channels/c/notifications?subscriber=me", headers=by(BOB)),
        "resume and acknowledge": ask("GET", "/channels/c/notifications?subscriber=me&after=1", headers=by(BOB)),
        "delete": ask("DELETE", ME, headers=by(BOB)),
    }
    for name, said in tries.items():
        assert (said.status_code, "belongs to another token" in said.json()["error"]) == (403, True), name
    assert ask("GET", ME, headers=by(BOB)).status_code == 404
    assert ask("GET", "/channels/c/subscribers", headers=by(BOB)).json() == {"subscribers": []}
    mine = [{"subscriber": "me", "acknowledged": 0}]
    assert ask("GET", "/channels/c/subscribers", headers=by(ANN)).json() == {"subscribers": mine}
    heard = converse(ask, "/channels/c/notifications", by(BOB), '{"acknowledge": 1}', query="subscriber=me&after=1")
    assert (heard[0]["type"], "another token" in heard[0]["reason"]) == ("websocket.close", True)
    assert ask.broker.channel("c").acknowledged == {"me": 0}
    assert ask("PUT", f"{ME}?acknowledged=1", headers=by(ANN)).status_code == 204
    assert ask.broker.channel("c").acknowledged == {"me": 1}


def test_a_connection_does_not_acknowledge_for_who_has_its_name_after_it():
    made = broker()
    made.load(BASE)
    made.create_channel("c", STUDENTS)
    before = made.subscribe("c", "me", lambda: None, owner="ann")
    made.publish(student(1))
    made.unsubscribe("c", "me", owner="ann")
    made.subscribe("c", "me", lambda: None, after=0, owner="bob")
    made.publish(student(2))
    before.acknowledge(2)
    assert made.channel("c").acknowledged == {"me": 1}
    made.delete_channel("c")
    made.create_channel("c", STUDENTS)
    made.subscribe("c", "me", lambda: None, owner="ann")
    made.publish(student(3))
    before.acknowledge(1)
    assert made.channel("c").acknowledged == {"me": 0}


def test_the_names_of_webhooks_are_the_operators(ask):
    hook = Webhook("c", "http://taker.example/in")
    where = f"/channels/c/subscribers/{hook.subscriber}"
    assert ask("PUT", where, headers=by(ANN)).status_code == 403
    ask.broker.subscribe("c", hook.subscriber, lambda: None, owner=OPERATOR).close()
    ask("POST", "/publish", content=GRAPH, headers=by(ANN))
    for method, path in (("PUT", f"{where}?acknowledged=1"), ("DELETE", where)):
        said = ask(method, path, headers=by(ANN))
        assert (said.status_code, "webhook" in said.json()["error"]) == (403, True)
    assert ask.broker.channel("c").acknowledged == {hook.subscriber: 0}


def test_names_of_a_token_that_is_no_more_are_free():
    made = broker()
    made.create_channel("c", STUDENTS)
    made.subscribe("c", "me", lambda: None, owner=identity(ANN))
    made.subscribe("c", "webhook:1", lambda: None, owner=OPERATOR)
    with Client(made, Access([Grant(BOB)])) as ask:
        assert ask("PUT", ME, headers=by(BOB)).status_code == 204
        assert ask("PUT", "/channels/c/subscribers/webhook:1", headers=by(BOB)).status_code == 403


def test_without_tokens_everybody_is_one():
    made = broker()
    made.create_channel("c", STUDENTS)
    made.subscribe("c", "hers", lambda: None, owner=identity(ANN))
    with Client(made) as ask:
        assert ask("PUT", ME, headers=by(ANN)).status_code == 204
        assert ask("PUT", ME, headers=by(BOB)).status_code == 204
        assert ask("PUT", "/channels/c/subscribers/hers", headers=by(BOB)).status_code == 204
        ask("POST", "/publish", content=GRAPH, headers=by(ANN, "k"))
        assert ask("POST", "/publish", content=GRAPH, headers=by(BOB, "k")).json()["repeated"]
    assert made.channel("c").owners == {"hers": identity(ANN), "me": ""}


def test_quotas_are_of_a_token():
    made = broker(limits=Limits(channels=1, subscribers=1, waiting=1))
    for owner in ("ann", "bob"):
        made.create_channel(owner, STUDENTS, owner=owner)
    for owner in ("ann", "bob"):
        with pytest.raises(LimitError, match="1 channels exist already of this token"):
            made.create_channel(f"{owner} again", STUDENTS, owner=owner)
        made.subscribe("ann", owner, lambda: None, owner=owner)
        with pytest.raises(LimitError, match="1 subscribers exist already of this token"):
            made.subscribe("ann", f"{owner} again", lambda: None, owner=owner)
        listening = made.listen("bob", lambda: None, owner=owner)
        with pytest.raises(LimitError, match="of this token"):
            made.listen("bob", lambda: None, owner=owner)
        listening.close()
        made.listen("bob", lambda: None, owner=owner)
        made.submit(student(1), (), owner=owner)
        with pytest.raises(BusyError, match="1 publications wait"):
            made.submit(student(1), (), owner=owner)
    made.step()
    made.submit(student(2), (), owner="ann")
    made.delete_channel("ann")
    made.create_channel("once more", STUDENTS, owner="ann")


def test_sepa_channels_count_for_who_asked():
    made = broker(limits=Limits(channels=1))
    asking = (
        json.dumps({"subscribe": {"sparql": STUDENTS}}),
        json.dumps({"subscribe": {"sparql": select("?x a :Grad")}}),
    )
    with Client(made, Access([Grant(ANN, frozenset(OPERATIONS)), Grant(BOB)])) as ask:
        ask("PUT", "/channels/bobs", content=STUDENTS, headers=by(BOB))
        heard = converse(ask, "/subscribe", by(ANN), *asking)
        said = [json.loads(message["text"]) for message in heard if message["type"] == "websocket.send"]
    assert ["notification" in said[0], said[1]["error"]] == [True, "LimitError"]


def test_a_foreign_name_is_refused_in_the_core():
    made = broker()
    made.create_channel("c", STUDENTS)
    made.subscribe("c", "me", lambda: None, owner="ann")
    for do in (made.subscribe, made.acknowledge):
        with pytest.raises(ForeignNameError):
            do("c", "me", None, owner="bob")
    with pytest.raises(ForeignNameError):
        made.unsubscribe("c", "me", owner="bob")
