"""The core of the query service: who gets which answers, whatever happens in between; every limit holds."""

import json
import threading
import time
from collections.abc import Iterator
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.engines import load
from streamgauge.formats.lines import Advance, decode_answer, encode_answer
from streamgauge.query import QueryError, parse
from streamgauge.semantics.jumps import TimeJumpError
from streamgauge.semantics.refusal import RefusedError
from streamgauge.servers.http.events import Answers, End
from streamgauge.servers.queries.catalogue import ConflictError, UnknownQueryError
from streamgauge.servers.queries.limits import QueriesBusyError, QueryLimitError, QueryLimits
from streamgauge.servers.queries.registry import Queries
from streamgauge.servers.queries.requests import QueryRegistration, RequestError, read_registration
from streamgauge.watching import watch
from tests.examples import examples
from tests.servers.programs import DYING, PROGRAM
from tests.servers.queries.asks import IN, OUT, construct, element, select, service

WAIT = 300


@pytest.fixture
def queries() -> Iterator[Queries]:
    made = service()
    yield made
    made.close("the test is over")


def nothing() -> None:
    """Nobody waits."""


def answers(subscription):
    return [decode_answer(notification.line) for notification in subscription.take()]


def test_a_query_from_registration_to_its_end(queries):
    running = queries.register(QueryRegistration(select()))
    subscription = running.answers.subscribe(None, nothing)
    assert queries.publish(IN, [element(time) for time in (0, 1000, 2500, 3000, 4000)]) == 1
    assert queries.settle(WAIT)
    assert [(answer.instant, len(answer.added)) for answer in answers(subscription)] == [(2000, 1), (4000, 1)]
    assert (running.elements, running.late, queries.streams()) == (5, 0, {IN: 5})
    queries.deregister(running.name)
    assert (subscription.over, queries.queries()) == (End("deregistered"), [])
    with pytest.raises(UnknownQueryError, match="no query q1"):
        queries.query(running.name)


@pytest.mark.parametrize("reader_first", [False, True])
def test_the_output_of_one_query_is_the_stream_of_another(queries, reader_first):
    texts = [construct(), select(OUT, 4)]
    registered = [queries.register(QueryRegistration(text)) for text in (reversed(texts) if reader_first else texts)]
    second = registered[0 if reader_first else 1]
    queries.publish(IN, [element(time, f"s{time} p o.") for time in range(0, 13_000, 1000)])
    assert queries.settle(WAIT)
    result = answers(second.answers.subscribe(0, nothing))
    assert [(answer.instant, len(answer.added)) for answer in result] == [(4000, 2), (8000, 4), (12_000, 4)]
    assert queries.streams() == {IN: 13, OUT: 6}


def test_no_stream_has_two_writers_and_no_query_feeds_itself(queries):
    queries.register(QueryRegistration(construct("urn:b", "urn:a")))
    queries.register(QueryRegistration(construct("urn:c", "urn:b")))
    with pytest.raises(ConflictError, match="its own input"):
        queries.register(QueryRegistration(construct("urn:a", "urn:c")))
    with pytest.raises(ConflictError, match="is the output of q1"):
        queries.register(QueryRegistration(construct("urn:b", "urn:x")))
    with pytest.raises(ConflictError, match="publish on another"):
        queries.publish("urn:b", [element(0)])
    queries.deregister("q1")
    queries.publish("urn:b", [element(0)])


def test_static_data_of_a_query_and_shared(queries):
    text = (
        select()
        .replace("FROM NAMED WINDOW", "FROM <urn:static> FROM NAMED WINDOW")
        .replace("WINDOW <urn:w> { ?s ?p ?o }", "WINDOW <urn:w> { ?s <urn:p> ?q } ?q <urn:in> ?o .")
    )
    with pytest.raises(RequestError, match="<urn:static>"):
        queries.register(QueryRegistration(text))
    own = queries.register(QueryRegistration(text, static="<urn:b> <urn:in> <urn:own> ."))
    queries.share("urn:static", (("<urn:b>", "<urn:in>", "<urn:shared>"),))
    shared = queries.register(QueryRegistration(text))
    queries.publish(IN, [element(0), element(2000)])
    assert queries.settle(WAIT)
    for running, says in ((own, "<urn:own>"), (shared, "<urn:shared>")):
        assert [answer.added for answer in answers(running.answers.subscribe(0, nothing))] == [(("<urn:a>", says),)]


def test_time_passes_where_the_streams_say_so(queries):
    text = """SELECT ?s FROM NAMED WINDOW <urn:w> ON <urn:in> [RANGE PT2S STEP PT2S]
    FROM NAMED WINDOW <urn:v> ON <urn:other> [RANGE PT2S STEP PT2S]
    WHERE { { WINDOW <urn:w> { ?s ?p ?o } } UNION { WINDOW <urn:v> { ?s ?p ?o } } }"""
    both = queries.register(QueryRegistration(text))
    one = queries.register(QueryRegistration(select()))
    queries.publish(IN, [element(0), Advance(5000)])
    assert queries.settle(WAIT)
    assert (both.answers.number, one.answers.number) == (0, 2)
    queries.publish("urn:other", [Advance(3000)])
    assert queries.settle(WAIT)
    assert both.answers.number == 1
    queries.publish(IN, [element(4500)])
    assert queries.settle(WAIT)
    assert (both.late, one.late) == (0, 1)


def test_time_passes_by_the_wall_clock():
    now = [0]
    queries = Queries(load, ("live",), clock=lambda: now[0])
    running = queries.register(QueryRegistration(select(), advance="wall"))
    queries.publish(IN, [element(100)])
    assert queries.settle(WAIT)
    now[0] = 2001
    queries.tick()
    assert queries.settle(WAIT)
    assert running.answers.number == 1
    queries.close("over")


def test_an_element_that_goes_back_is_late_and_ends_nothing(queries):
    running = queries.register(QueryRegistration(select()))
    queries.publish(IN, [element(3000), element(1000), element(4000)])
    assert queries.settle(WAIT)
    assert (running.late, running.fault, running.answers.number) == (1, "", 1)


@pytest.mark.parametrize(
    ("wish", "error", "says"),
    [
        ({"query": "SELECT * { ?s ?p ?o }"}, QueryError, "this query has no stream"),
        ({"query": select() + "}"}, QueryError, "line 1"),
        ({"query": 7}, RequestError, "query"),
        ({"text": select()}, RequestError, "text is unknown"),
        ([], RequestError, "JSON object"),
        ({"query": select(), "engine": "csparql"}, RequestError, "there is live"),
        ({"query": select(), "dialect": "sql"}, RequestError, "expected one of"),
        ({"query": select(), "advance": "never"}, RequestError, "expected one of wall"),
        ({"query": select(), "semantics": "mine"}, ValueError, "no semantics named"),
        ({"query": select(), "semantics": {"name": "x", "tick": "never"}}, ValueError, "tick"),
        ({"query": select(), "semantics": 7}, RequestError, "semantics is 7"),
        ({"query": select(), "semantics": "cqels-1.x"}, RefusedError, "clock"),
        ({"query": select(), "lateness": -1}, RequestError, "lateness is -1"),
        ({"query": select(), "static": "<a"}, RequestError, "static, line 1"),
        ({"query": select() + "#" * 70_000}, QueryLimitError, "longer than 65536 bytes"),
    ],
)
def test_wishes_that_are_refused(queries, wish, error, says):
    with pytest.raises(error, match=says):
        queries.register(read_registration(wish))
    assert queries.queries() == []


def test_limits_on_queries_and_static_data():
    queries = service(queries=1, static_triples=1, shared_triples=2)
    with pytest.raises(QueryLimitError, match="more than 1 static"):
        queries.register(QueryRegistration(select(), static="<urn:a> <urn:b> 1, 2 ."))
    queries.register(QueryRegistration(select()))
    with pytest.raises(QueryLimitError, match="1 queries are registered"):
        queries.register(QueryRegistration(select()))
    queries.share("urn:a", (("a", "b", "c"),) * 2)
    queries.share("urn:a", (("a", "b", "c"),))
    with pytest.raises(QueryLimitError, match="more than 2 shared"):
        queries.share("urn:b", (("a", "b", "c"),) * 2)
    queries.close("over")
    with pytest.raises(ConflictError, match="ending"):
        queries.publish(IN, [element(0)])
    with pytest.raises(ConflictError, match="ending"):
        queries.register(QueryRegistration(select()))


def test_limits_on_time_memory_streams_and_rate():
    now = [0.0]
    limits = QueryLimits(lifetime=10, memory=4000, elements_per_second=10, streams=1)
    queries = Queries(load, ("live",), limits, clock=lambda: 0, steady=lambda: now[0])
    old, big = queries.register(QueryRegistration(select())), queries.register(QueryRegistration(select("urn:big")))
    queries.publish("urn:big", [element(time) for time in range(10)])
    with pytest.raises(QueriesBusyError, match="10 elements a second") as busy:
        queries.publish("urn:big", [element(10)])
    assert busy.value.after == pytest.approx(0.1)
    now[0] = 1.0
    queries.publish("urn:big", [element(10)])
    big.worker.settle(WAIT)
    assert "more than 0 MiB" in big.fault
    with pytest.raises(QueryLimitError, match="1 streams"):
        queries.publish(IN, [element(0)])
    now[0] = 11.0
    queries.tick()
    assert "limit" in old.fault
    queries.close("over")


class Stuck:
    """An engine that does nothing until it is let go, then fails."""

    def __init__(self) -> None:
        self.begun, self.go = threading.Event(), threading.Event()

    def refuse(self, query, semantics):
        return None

    def start(self, query, semantics, emit):
        return self

    def push(self, element):
        self.begun.set()
        self.go.wait(WAIT)
        raise RuntimeError("out of luck")

    def advance(self, time):
        """Nothing."""

    def close(self):
        """Nothing."""


def test_a_publisher_is_slowed_and_a_failure_is_told(monkeypatch):
    end = Answers.end
    monkeypatch.setattr(Answers, "end", lambda *arguments: (time.sleep(0.1), end(*arguments)))  # a slow thread
    stuck = Stuck()
    queries = Queries(lambda name: stuck, ("stuck",), QueryLimits(waiting=2))
    running = queries.register(QueryRegistration(select()))
    subscription = running.answers.subscribe(None, nothing)
    while not running.worker.full:
        queries.publish(IN, [element(0)])
    with pytest.raises(QueriesBusyError, match="q1 cannot keep up"):
        queries.publish(IN, [element(0)])
    stuck.go.set()
    assert running.worker.settle(WAIT)
    assert running.fault == "the engine failed: out of luck"
    assert (running.state, subscription.over) == ("failed", End(running.fault, "failed"))
    queries.publish(IN, [element(11)])
    queries.close("over")


@pytest.mark.server
def test_a_program_answers_beside_the_service():
    queries = Queries(lambda _name: PROGRAM, ("program",))
    running = queries.register(QueryRegistration(select()))
    queries.publish(IN, [element(0), element(1000), element(2500)])
    end = time.monotonic() + WAIT
    while not running.answers.number:
        assert time.monotonic() < end
        time.sleep(0.02)
    assert [len(answer.added) for answer in answers(running.answers.subscribe(0, nothing))] == [1]
    queries.deregister(running.name)
    assert not [thread for thread in threading.enumerate() if thread.name in ("engine-answers", "streamgauge-q1")]


@pytest.mark.server
def test_a_program_that_dies_while_nothing_comes_is_noticed():
    queries = Queries(lambda _name: DYING, ("dying",))
    running = [queries.register(QueryRegistration(select())) for _ in range(2)]
    woken = threading.Event()
    subscription = running[1].answers.subscribe(None, woken.set)
    queries.publish(IN, [element(0)])
    assert woken.wait(WAIT)
    says = "the engine failed: the engine ended with exit code 1 before its input did: its last words: out of luck"
    assert subscription.over == End(says, "failed")
    assert [(process.state, process.fault) for process in running] == [("failed", says)] * 2
    assert queries.publish(IN, [element(1000)]) == 2
    queries.close("over")
    assert [process.fault for process in running] == [says] * 2
    assert not [thread for thread in threading.enumerate() if thread.name in ("engine-answers", "streamgauge-q1")]


def test_a_query_is_asked_under_what_its_engine_has():
    class Other(Stuck):
        PROFILES = ("csparql", "cqels")

    queries = Queries(lambda _name: Other(), ("other",))
    assert queries.register(QueryRegistration(select())).question.semantics.name == "csparql"
    assert queries.register(QueryRegistration(select(), semantics="cqels")).question.semantics.name == "cqels"
    queries.close("over")


def test_a_slow_subscriber_is_left_and_resumes():
    queries = service(kept=6, lag=3)
    running = queries.register(QueryRegistration(select()))
    slow, quick = running.answers.subscribe(None, nothing), running.answers.subscribe(None, nothing)
    seen = []
    for at in range(0, 12_000, 2000):
        queries.publish(IN, [element(at)])
        assert queries.settle(WAIT)
        seen += quick.take()
    assert [item.number for item in seen] == [1, 2, 3, 4, 5]
    assert (quick.over, slow.over) == (None, End("too slow: 4 answers behind, resume from here"))
    slow.close()
    again = running.answers.subscribe(slow.place, nothing)
    assert (again.missed, again.take()) == (0, seen)
    queries.publish(IN, [element(time) for time in range(12_000, 18_000, 2000)])
    assert queries.settle(WAIT)
    late = running.answers.subscribe(0, nothing)
    assert (late.missed, [item.number for item in late.take()]) == (2, [3, 4, 5, 6, 7, 8])
    unknown = running.answers.subscribe(99, nothing)
    assert [item.number for item in unknown.take()] == [3, 4, 5, 6, 7, 8]
    queries.close("over")


def test_kept_answers_are_bounded_in_bytes():
    queries = service(kept_bytes=200)
    running = queries.register(QueryRegistration(select()))
    queries.publish(IN, [element(time) for time in range(0, 40_000, 2000)])
    assert queries.settle(WAIT)
    assert running.answers.bytes <= 200
    assert running.answers.number == 19
    queries.close("over")


def test_subscribers_beside_a_publisher_get_each_answer_once_and_in_order():
    queries = service(kept=100_000, lag=100_000)
    running = queries.register(QueryRegistration(select(size=1), t0=0))
    done = threading.Event()
    got: dict[int, list[int]] = {which: [] for which in range(4)}

    def listen(which: int) -> None:
        woken = threading.Event()
        while True:
            subscription = running.answers.subscribe(got[which][-1] if got[which] else 0, woken.set)
            for _ in range(which + 1):
                over = done.is_set()
                woken.wait(0.01)
                woken.clear()
                got[which] += [notification.number for notification in subscription.take()]
                if over:
                    return
            subscription.close()

    listening = [threading.Thread(target=listen, args=(which,)) for which in got]
    for thread in listening:
        thread.start()
    for at in range(0, 400_000, 10_000):
        queries.publish(IN, [element(at + more) for more in range(0, 10_000, 500)])
    assert queries.settle(WAIT)
    done.set()
    for thread in listening:
        thread.join(WAIT)
    assert running.answers.number == 399
    assert all(numbers == list(range(1, 400)) for numbers in got.values())
    queries.close("over")


understood = cache(parse)


def plain(text, elements):
    return [json.loads(encode_answer(answer)) for answer in watch(understood(text), elements, end="stream", t0=0)]


@pytest.mark.slow
@examples(20, prove=1000)
@given(st.data())
def test_whatever_happens_in_between_every_subscriber_gets_each_answer_once_and_in_order(data):
    """Drawn interleavings: what a subscriber got over its connections is what a plain watch of the elements gives."""
    queries = service()
    time, live, published = 0, {}, {}
    try:
        for _ in range(data.draw(st.integers(1, 25))):
            act = data.draw(st.sampled_from(["publish", "publish", "publish", "register", "subscribe", "leave", "end"]))
            if act == "register" and len(live) < 4:
                running = queries.register(QueryRegistration(select(size=data.draw(st.integers(1, 3))), t0=0))
                live[running.name], published[running.name] = [], []
            elif act == "publish":
                batch = []
                for _ in range(data.draw(st.integers(1, 4))):
                    time += data.draw(st.integers(0, 2500))
                    batch.append(element(time, f"s{data.draw(st.integers(0, 2))} p o."))
                queries.publish(IN, batch)
                for name in live:
                    published[name] += batch
            elif live:
                name = data.draw(st.sampled_from(sorted(live)))
                _change(data, queries, act, name, live)
        assert queries.settle(WAIT)
        for name, subscribers in live.items():
            wanted = plain(queries.query(name).question.text, published[name]) if published[name] else []
            assert queries.query(name).fault == ""
            for client in subscribers:
                client.connect(queries)
                assert [json.loads(item.line) for item in client.got] == wanted[client.first :]
                assert [item.number for item in client.got] == list(range(client.first + 1, len(wanted) + 1))
    finally:
        queries.close("over")


def _change(data, queries, act, name, live):
    if act == "subscribe":
        queries.settle(WAIT)
        after = data.draw(st.sampled_from([0, None]))
        live[name].append(Client(name, queries.query(name).answers.number if after is None else 0))
        live[name][-1].connect(queries)
    elif act == "leave" and live[name]:
        data.draw(st.sampled_from(live[name])).connect(queries)
    elif act == "end":
        queries.deregister(name)
        del live[name]


class Client:
    """Connects again and again, each time from the number of the last answer that it got."""

    def __init__(self, name, first):
        self.name, self.first, self.last, self.got = name, first, first, []
        self.subscription = None

    def connect(self, queries):
        if self.subscription is not None:
            self.got += self.subscription.take()
            self.subscription.close()
            self.last = self.got[-1].number if self.got else self.first
        self.subscription = queries.query(self.name).answers.subscribe(self.last, nothing)
        self.got += self.subscription.take()
        self.last = self.got[-1].number if self.got else self.first


FAR = 1_795_904_000_000


def test_a_jump_in_time_is_refused_before_anything_is_taken(queries):
    running = queries.register(QueryRegistration(select()))
    queries.publish(IN, [element(1000)])
    with pytest.raises(TimeJumpError, match=r"897,951,999 reports .* more than 100,000; the units look mixed"):
        queries.publish(IN, [element(2000), element(FAR)])
    with pytest.raises(TimeJumpError, match="time jumps from 1,000 to"):
        queries.publish(IN, [Advance(FAR)])
    queries.publish(IN, [element(3000)])
    assert queries.settle(WAIT)
    assert (running.elements, running.time, running.state) == (2, 3000, "running")


def test_an_asked_t0_is_where_time_begins(queries):
    queries.register(QueryRegistration(select(), t0=0))
    with pytest.raises(TimeJumpError, match="time jumps from 0 to"):
        queries.publish(IN, [element(FAR)])


def test_a_gap_within_the_bound_is_answered(queries):
    running = queries.register(QueryRegistration(select()))
    subscription = running.answers.subscribe(None, nothing)
    queries.publish(IN, [element(0), element(400_000)])
    assert queries.settle(WAIT)
    assert len(answers(subscription)) == 200


def test_the_wall_clock_ends_a_query_whose_elements_have_another():
    queries = Queries(load, ("live",), QueryLimits(), clock=lambda: FAR, steady=lambda: 0.0)
    running = queries.register(QueryRegistration(select(), advance="wall"))
    queries.publish(IN, [element(1000)])
    assert queries.settle(WAIT)
    queries.tick()
    assert "the units look mixed" in running.fault
    queries.close("the test is over")
