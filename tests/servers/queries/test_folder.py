"""A folder of queries: files come, change, break and go; a file as sink has each answer once, after a restart too."""

import json
import time

import pytest

from streamgauge.cli.query_files import read_query_file
from streamgauge.engines import load
from streamgauge.formats.lines import Advance
from streamgauge.servers.queries.deliveries import Deliveries
from streamgauge.servers.queries.durability import ServiceJournal
from streamgauge.servers.queries.folder import QueryFolder
from streamgauge.servers.queries.http import MISTAKES
from streamgauge.servers.queries.measures import folder_metrics
from streamgauge.servers.queries.registry import Queries
from streamgauge.sources import SourceError, open_sink
from streamgauge.sources.contract import Delivery
from tests.servers.queries.asks import IN, element, select


class Service:
    """A service with a folder of queries."""

    def __init__(self, place, state=None, open_=open_sink):
        journal = None if state is None else ServiceJournal(state, time.monotonic)
        self.queries = Queries(load, ("live",), clock=lambda: 0, journal=journal)
        self.deliveries = Deliveries(self.queries, open_)
        self.folder = QueryFolder(self.queries, place, read_query_file, self.deliveries, MISTAKES)
        self.folder.look(at_once=True)

    @property
    def running(self):
        return {query.name: query.question.text for query in self.queries.queries()}

    def publish(self, *times):
        self.queries.publish(IN, [element(time) for time in times])
        assert self.queries.settle(30)

    def delivered(self, count):
        for _ in range(600):
            if sum(delivery.number for delivery in self.deliveries.status()) >= count:
                return
            time.sleep(0.02)
        raise AssertionError([(one.number, one.fault) for one in self.deliveries.status()])

    def close(self):
        self.deliveries.close()
        self.queries.close("the end", 5)


@pytest.fixture
def service(tmp_path):
    """Begins a service over the folder ``alerts`` of the test; all are ended."""
    begun = []
    (tmp_path / "alerts").mkdir()

    def begin(**options):
        begun.append(Service(tmp_path / "alerts", **options))
        return begun[-1]

    yield begin
    for one in begun:
        one.close()


def write(tmp_path, name, text):
    (tmp_path / "alerts" / name).write_text(text)


def test_files_come_change_and_go(tmp_path, service):
    write(tmp_path, "hot.rq", select())
    running = service()
    assert running.running == {"hot": select()}
    write(tmp_path, "cold.rq", select(size=3))
    running.folder.look()
    assert set(running.running) == {"hot"}, "it may be half written: another look decides"
    running.folder.look()
    assert set(running.running) == {"hot", "cold"}
    write(tmp_path, "hot.rq", select(size=4))
    (tmp_path / "alerts" / "cold.rq").unlink()
    running.folder.look(at_once=True)
    assert running.running == {"hot": select(size=4)}


def test_what_is_the_same_goes_on(tmp_path, service):
    write(tmp_path, "hot.rq", select())
    running = service()
    before = running.queries.query("hot")
    write(tmp_path, "hot.rq", select())
    write(tmp_path, "hot.toml", "")
    running.folder.look(at_once=True)
    assert running.queries.query("hot") is before


BROKEN = {
    "a query that is none": ({"bad.rq": "SELECT ?s WHERE {"}, "bad.rq", "line 1"),
    "an unknown option": ({"bad.rq": select(), "bad.toml": "latness = '2s'\n"}, "bad.rq", "bad.toml:1: latness: no"),
    "no TOML": ({"bad.rq": select(), "bad.toml": "\nlateness 2s\n"}, "bad.rq", "bad.toml:2: not TOML"),
    "no duration": ({"bad.rq": select(), "bad.toml": "\nlateness = 'x'\n"}, "bad.rq", "bad.toml:2: lateness: expected"),
    "no profile": ({"bad.rq": select(), "bad.toml": "semantics = 'x'\n"}, "bad.rq", "x"),
    "no engine": ({"bad.rq": select(), "bad.toml": "engine = 'x'\n"}, "bad.rq", "engine is 'x': there is live"),
    "no field": ({"bad.rq": select(), "bad.toml": "dialect = 'x'\n"}, "bad.rq", "bad.toml:1: dialect is 'x'"),
    "no list": ({"bad.rq": select(), "bad.toml": "to = 'x'\n"}, "bad.rq", "bad.toml:1: write a list of URLs"),
    "static data that are not there": ({"bad.rq": select(), "bad.toml": "static = 'x.ttl'\n"}, "bad.rq", "x.ttl"),
    "a name of clients": ({"q7.rq": select()}, "q7.rq", "names such as q1"),
    "no text": ({"bad.rq": b"\xff\xfe\xfa"}, "bad.rq", "bad.rq"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_refused_and_others_go_on(tmp_path, service, name, caplog):
    files, refused, says = BROKEN[name]
    for file, text in files.items():
        (tmp_path / "alerts" / file).write_bytes(text if isinstance(text, bytes) else text.encode())
    write(tmp_path, "hot.rq", select())
    running = service()
    for _ in range(3):
        running.folder.look()
    assert set(running.running) == {"hot"}
    assert list(running.folder.refused) == [refused]
    assert says in running.folder.refused[refused]
    (record,) = [
        record for record in caplog.records if record.name == QueryFolder.__module__ and record.levelname == "ERROR"
    ]
    assert record.getMessage().startswith(f"{refused} is refused: ")
    metrics = {metric.name: metric.values for metric in folder_metrics(running.folder)}
    assert metrics["streamgauge_query_files_refused"] == (({}, 1.0),)
    (tmp_path / "alerts" / refused).unlink()
    running.folder.look(at_once=True)
    assert running.folder.refused == {}


def test_a_query_goes_on_as_it_was_while_its_file_is_broken(tmp_path, service, caplog):
    write(tmp_path, "hot.rq", select())
    running = service()
    before = running.queries.query("hot")
    write(tmp_path, "hot.rq", "SELECT")
    running.folder.look(at_once=True)
    assert running.queries.query("hot") is before
    assert "the query as it was goes on" in caplog.text
    write(tmp_path, "hot.rq", select(size=4))
    running.folder.look(at_once=True)
    assert (running.running, running.folder.refused) == ({"hot": select(size=4)}, {})


def test_options_stand_beside_the_query(tmp_path, service):
    (tmp_path / "alerts" / "sensors.ttl").write_text("<urn:a> <urn:in> <urn:kitchen> .")
    options = 'semantics = "csparql"\nlateness = "2s"\nt0 = "1s"\nstatic = "sensors.ttl"\nadvance = "wall"\n'
    write(tmp_path, "hot.toml", options)
    write(tmp_path, "hot.rq", select())
    question = service().queries.query("hot").question
    assert (question.semantics.name, question.semantics.lateness, question.t0, question.wall) == (
        "csparql",
        2000,
        1000,
        True,
    )
    assert question.query.static == (("<urn:a>", "<urn:in>", "<urn:kitchen>"),)


def test_static_data_that_change_are_read_again(tmp_path, service):
    data = tmp_path / "alerts" / "sensors.ttl"
    data.write_text("<urn:a> <urn:in> <urn:kitchen> .")
    write(tmp_path, "hot.toml", 'static = "sensors.ttl"\n')
    write(tmp_path, "hot.rq", select())
    running = service()
    data.write_text("<urn:a> <urn:in> <urn:hall> .")
    running.folder.look(at_once=True)
    assert running.queries.query("hot").question.query.static == (("<urn:a>", "<urn:in>", "<urn:hall>"),)


def numbers(file):
    """The instants of the answers in a file."""
    return [json.loads(line)["instant"] for line in file.read_text().splitlines()]


def test_answers_come_to_each_sink_once_whatever_is_restarted(tmp_path, service):
    out = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    write(tmp_path, "hot.toml", f'to = ["{out[0]}", "{out[1]}"]\n')
    write(tmp_path, "hot.rq", select())
    state = tmp_path / "state"
    running = service(state=state)
    running.publish(0, 1000, 2500, 4500)
    running.delivered(4)
    running.close()
    for file in out:
        file.write_bytes(file.read_bytes() + b'{"instant": "sent but not settled"}\n')
    running = service(state=state)
    assert set(running.running) == {"hot"}
    running.publish(6500)
    running.delivered(6)
    assert [numbers(file) for file in out] == [[2000, 4000, 6000]] * 2
    write(tmp_path, "hot.toml", f'to = ["{out[1]}"]\n')
    running.folder.look(at_once=True)
    running.publish(8500)
    running.delivered(4)
    assert [len(numbers(file)) for file in out] == [3, 4]
    assert running.queries.journal.state.records("sink").keys() <= {f"hot {file}" for file in out}


def test_a_file_that_went_while_the_service_was_down_ends_its_query(tmp_path, service):
    write(tmp_path, "hot.rq", select())
    running = service(state=tmp_path / "state")
    other = running.queries.register(read_query_file(tmp_path / "alerts" / "hot.rq").registration)
    running.close()
    (tmp_path / "alerts" / "hot.rq").unlink()
    assert set(service(state=tmp_path / "state").running) == {other.name}


class Away:
    """A sink that is away at first, then loses each message."""

    tries = 0

    def __init__(self):
        self.count = 0

    @classmethod
    def open(cls, _url):
        cls.tries += 1
        if cls.tries < 3:
            raise SourceError("no broker responds")
        return cls()

    def send(self, _message, key=None):
        self.count += 1
        self.key = key

    def hold(self):
        pass

    def settle(self, _patience=None):
        return Delivery(0, self.count, f"{self.key} is refused")

    def close(self, _patience):
        return self.settle()


def test_a_sink_that_is_away_is_opened_again_and_loss_is_told(tmp_path, service, caplog):
    write(tmp_path, "hot.toml", 'to = ["mqtt://me:hush@host/alerts"]\n')
    write(tmp_path, "hot.rq", select())
    running = service(open_=Away.open)
    running.publish(0, 2500, 4500)
    running.queries.publish(IN, [Advance(9000)])
    running.delivered(2)
    (delivery,) = running.deliveries.status()
    assert (Away.tries, delivery.fault, delivery.undelivered >= 2, delivery.behind >= 0) == (3, "", True, True)
    assert "the sink is away: no broker responds" in caplog.text
    assert "answers not delivered: hot/" in caplog.text
    assert "hush" not in caplog.text
    assert delivery.sink == "mqtt://me:...@host/alerts"
