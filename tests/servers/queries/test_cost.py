"""A query that costs too much ends with one sentence; others, and those who publish, do not wait for it."""

import time
from types import SimpleNamespace

import pytest

from streamgauge.engines import live
from streamgauge.incremental.budget import TooMuchError
from streamgauge.model.element import StreamElement
from streamgauge.semantics.refusal import RefusedError
from streamgauge.servers.queries.durability import ServiceJournal
from streamgauge.servers.queries.limits import QueryLimits
from streamgauge.servers.queries.registry import Queries
from streamgauge.servers.queries.requests import QueryRegistration, understand
from streamgauge.servers.queries.sessions import EngineSession, SessionQuery
from tests.servers.queries.asks import IN, element, select, service

WINDOW = f"FROM NAMED WINDOW <urn:w> ON <{IN}> [RANGE PT2S STEP PT2S]"


MANY = "makes more than 20000000 rows at once"
SLOW = "takes longer than it may"


def asked(pattern, window=WINDOW):
    return f"SELECT * {window} WHERE {{ WINDOW <urn:w> {{ {pattern} }} }}"


def crowd(time, count=3000):
    triples = tuple((f"<urn:s{n}>", "<urn:p>", f'"{n}"') for n in range(count))
    return StreamElement(IN, time, 0, triples)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pattern", "limits", "why"),
    [
        ("?a ?b ?c . ?d ?e ?f . ?g ?h ?i", {"seconds": 0.2}, "takes longer than it may"),
        ("?a ?b ?c . ?d ?e ?f", {"seconds": 60, "growth": 2**26}, "takes more memory than it may"),
    ],
)
def test_a_product_in_a_window_is_stopped_and_others_go_on(pattern, limits, why):
    queries = service(**limits)
    heavy, calm = queries.register(QueryRegistration(asked(pattern))), queries.register(QueryRegistration(select()))
    assert queries.publish(IN, [crowd(0), element(3000), element(6000)]) == 2
    assert queries.settle(60)
    assert heavy.fault in {f"its evaluation {item}: ask for less, or of smaller windows" for item in (why, SLOW, MANY)}
    assert heavy.state == "failed"
    assert heavy.evaluation.group.session._session is None
    assert (calm.state, calm.fault, calm.answers.number > 0) == ("running", "", True)
    queries.close("over")


@pytest.mark.slow
def test_reports_without_end_are_stopped():
    queries = service(seconds=0.2, jump=10**7)
    running = queries.register(QueryRegistration(asked("?a ?b ?c", WINDOW.replace("PT2S", "PT0.001S"))))
    queries.publish(IN, [element(0), element(4 * 10**6)])
    assert queries.settle(60)
    assert "takes longer than it may" in running.fault
    queries.close("over")


@pytest.mark.slow
def test_a_jump_in_time_takes_no_memory():
    queries = service(seconds=0.5, growth=2**24, jump=10**7)
    running = queries.register(QueryRegistration(asked("?a ?b ?c", WINDOW.replace("PT2S", "PT0.001S"))))
    queries.publish(IN, [element(0), element(4 * 10**6)])
    assert queries.settle(60)
    assert "takes longer than it may" in running.fault
    queries.close("over")


def test_a_query_that_takes_long_to_understand_is_refused(monkeypatch):
    def understand(*_given):
        end = time.thread_time() + 5
        while time.thread_time() < end:
            pass

    monkeypatch.setattr("streamgauge.servers.queries.registry.understand", understand)
    queries = service(seconds=0.02)
    with pytest.raises(TooMuchError, match="takes longer than it may"):
        queries.register(QueryRegistration(asked("?a ?b ?c")))
    assert queries.queries() == []


def test_a_pattern_that_is_too_large_is_refused_by_name():
    with pytest.raises(RefusedError, match="nested counted repetitions"):
        service().register(QueryRegistration(asked("?a ?b ?c FILTER REGEX(?c, '((a{1,99}){1,99}){1,99}')")))


class Costly:
    """The engine `live`, whose reports each keep some bytes, and compute for so long that this is seen."""

    refuse = staticmethod(live.refuse)

    def __init__(self, growth):
        self.sessions, self._growth, self._kept = 0, growth, []

    def start_all(self, queries):
        self.sessions += 1
        return live.start_all([(query, semantics, self._keeping(emit)) for query, semantics, emit in queries])

    def start(self, *query):
        return self.start_all([query])

    def _keeping(self, emit):
        def kept(answer):
            self._kept.append(b"1" * self._growth)
            end = time.thread_time() + 0.08
            while time.thread_time() < end:
                pass
            emit(answer)

        return kept


def costly(engine, journal=None, **limits):
    return Queries(lambda _name: engine, ("live",), QueryLimits(**limits), clock=lambda: 0, journal=journal)


COUNTED = asked("?s ?p ?o").replace("*", "(COUNT(*) AS ?n)")


def test_a_restarted_query_may_keep_what_its_window_holds_once_more_in_joins(tmp_path):
    """Before and after the restart: 60,000 triples in the window count as 24 MB beside 16; a report takes 20."""
    engine = Costly(20 * 2**20)
    for second in (0, 1):
        queries = costly(engine, ServiceJournal(tmp_path, time.monotonic), growth=2**24)
        running = queries.queries()[0] if second else queries.register(QueryRegistration(COUNTED))
        items = [element(5000)] if second else [crowd(0, 60_000), element(2500), crowd(3000, 60_000)]
        queries.publish(IN, items)
        assert queries.settle(60)
        queries.journal.wait(queries.journal.ticket(), 60)
        assert (running.state, running.fault, running.answers.number) == ("running", "", 1 + second)
        queries.close("over")


@pytest.mark.parametrize("stage", [property(lambda _: 1 / 0), []])
def test_an_engine_that_fails_to_name_what_it_evaluates_names_nothing(stage):
    """The limits of all queries are checked by one thread, which asks for it."""
    started = type("Started", (), {"stage": stage, "push": lambda *_: None})()
    engine = SimpleNamespace(refuse=live.refuse, start=lambda *_: started)
    query, semantics = understand(QueryRegistration(COUNTED), live, QueryLimits())
    session = EngineSession(engine, [SessionQuery(query, semantics, print)])
    assert session.stage is None
    session.push(element(0))
    assert session.stage is None


def test_queries_in_one_session_each_have_the_limits_to_themselves():
    """Together they compute for longer and keep more than one may: their session is not begun again."""
    engine = Costly(2**24)
    queries = costly(engine, seconds=0.3, growth=3 * 2**23)
    running = [queries.register(QueryRegistration(COUNTED.replace("?n", f"?n{number}"))) for number in range(6)]
    queries.publish(IN, [element(0), element(2500)])
    assert queries.settle(60)
    assert [(query.state, query.answers.number) for query in running] == [("running", 1)] * 6
    assert engine.sessions == 1
    queries.close("over")
