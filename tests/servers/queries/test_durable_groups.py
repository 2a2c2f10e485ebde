"""Different queries of a service with a state, killed or stopped anywhere: each is answered as if it were alone."""

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Lock
from types import SimpleNamespace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streamgauge.engines import live
from streamgauge.formats.lines import Advance, decode_answer
from streamgauge.model.answer import Answer
from streamgauge.servers.queries.durability import ServiceJournal
from streamgauge.servers.queries.limits import QueryLimits
from streamgauge.servers.queries.registered import RegisteredQuery
from streamgauge.servers.queries.registry import Queries
from streamgauge.servers.queries.requests import QueryRegistration
from streamgauge.servers.queries.sessions import as_element
from tests.examples import examples
from tests.servers.queries.asks import IN, element
from tests.servers.queries.test_groups import PATTERNS, WAIT, asked, constructed, in_columns, service

pytestmark = pytest.mark.server


class HeldSession:
    """A session of `live` that takes nothing while its service is held."""

    def __init__(self, session: object, free: Event) -> None:
        self._session, self._free = session, free

    def __getattr__(self, name: str) -> object:
        if name in ("push", "push_batch", "advance"):
            self._free.wait()
        return getattr(self._session, name)


class KilledService:
    """A service with a state, which is begun again from it; while it is held, what is published is not answered."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._lives, self._writing, self._free = folder, count(), Lock(), Event()
        self.queries = self._begun(folder / str(next(self._lives)))

    def _begun(self, state: Path) -> Queries:
        journal = ServiceJournal(state, time.monotonic)
        write = journal.state.write

        def guarded(*change: object) -> None:
            with self._writing:
                write(*change)

        journal.state.write = guarded
        self._state, self._free = state, Event()
        self._free.set()
        limits = QueryLimits(queries=100)
        return Queries(self._engine(self._free), ("live",), limits, clock=lambda: 0, journal=journal)

    @staticmethod
    def _engine(free: Event) -> Callable[[str], SimpleNamespace]:
        def start_all(queries: object) -> HeldSession:
            return HeldSession(live.start_all(queries), free)

        engine = SimpleNamespace(refuse=live.refuse, start_all=start_all, start=lambda *query: start_all([query]))
        return lambda _name: engine

    def hold(self) -> None:
        """Answer nothing more until it settles, is stopped or killed."""
        self._free.clear()

    def settle(self) -> None:
        """Wait until all is answered and durable."""
        self._free.set()
        assert self.queries.settle(WAIT)
        self.queries.journal.wait(self.queries.journal.ticket(), WAIT)

    def stop(self) -> None:
        """End as asked, and begin again."""
        self._free.set()
        self.queries.close("stopped")
        self.queries = self._begun(self._state)

    def kill(self) -> None:
        """Begin again with what was durable at some moment."""
        state = self._folder / str(next(self._lives))
        with self._writing:
            shutil.copytree(self._state, state)
        self._free.set()
        self.queries.close("killed")
        self.queries = self._begun(state)


@contextmanager
def killed_service() -> Iterator[KilledService]:
    with TemporaryDirectory() as folder:
        killed = KilledService(Path(folder))
        yield killed
        killed.settle()
        killed.queries.close("over")


def rows(running: RegisteredQuery) -> list[tuple[int, Answer]]:
    """The answers with their numbers; rows of a report have no order."""
    numbered = [(kept.number, decode_answer(kept.line)) for kept in running.answers.subscribe(0, lambda: None).take()]
    return [
        (number, replace(one, added=tuple(sorted(one.added)), removed=tuple(sorted(one.removed))))
        for number, one in numbered
    ]


def alone(request: QueryRegistration, batches: list[list[object]], stream: str = IN) -> list[tuple[int, Answer]]:
    """The answers to a query that has a service without a state for itself."""
    queries = service()
    running = queries.register(request)
    for batch in batches:
        queries.publish(stream, batch)
    assert queries.settle(WAIT)
    answers = rows(running)
    queries.close("over")
    return answers


def many(triples: str, size: int) -> list[object]:
    """Elements that are kept in columns."""
    return [element(20 * at, triples) for at in range(size)]


operators = st.sampled_from(["RSTREAM", "RSTREAM", "ISTREAM", "DSTREAM"])
bounds = {"lateness": st.sampled_from([None, 700]), "t0": st.sampled_from([None, 0])}
wishes = (
    st.builds(asked, st.sampled_from(PATTERNS), operators, step=st.sampled_from([1, 1, 1, 2]))
    | st.builds(asked, st.sampled_from(PATTERNS), operators, **bounds)
    | st.builds(constructed, operators, step=st.sampled_from([1, 1, 2]))
    | st.builds(asked, st.sampled_from(PATTERNS), st.just("ISTREAM"), st.just("cqels"), **bounds)
)
texts = st.sampled_from(["a p b.", "b p c.", "a p c. c p b.", "a q b."])
items = st.builds(element, st.integers(0, 900), texts) | st.builds(Advance, st.integers(0, 900))
batches = st.lists(items, min_size=1, max_size=4) | st.builds(many, texts, st.integers(10, 30))
ends = st.sampled_from(["hold", "hold", "kill", "kill", "stop"])
acts = st.lists(wishes | batches | batches | ends | st.integers(0, 9), min_size=8, max_size=40)
SAME = [*(asked(pattern) for pattern in PATTERNS), constructed()]
ROUND = [many("a p b.", 20), [element(300, "b p c.")], [element(700, "a p c. c p b.")]]


@examples(8, prove=2000)
@given(acts)
@example([*SAME[:2], "kill", *ROUND, *SAME[2:], "kill", *ROUND, "stop", *ROUND * 3, 0, "kill", SAME[0], *ROUND])
@example([*SAME[:2], "hold", *ROUND, *SAME[2:], ROUND[1], "kill", *ROUND])  # none has answered what came before a query
@example([*SAME[:2], ROUND[0], "hold", *ROUND[1:], *SAME[2:], "kill", *ROUND])  # or some of it was answered
def test_different_queries_go_on_as_if_they_were_alone(acts):
    seen, asks, answers = {}, {}, {}
    with killed_service() as killed:
        for place, act in enumerate(acts):
            queries = killed.queries
            if isinstance(act, QueryRegistration):
                name = queries.register(act).name
                asks[name], seen[name] = act, []
            elif isinstance(act, list):
                batch = [replace(item, time=item.time + place * 400) for item in act]
                for running in queries.queries():
                    seen[running.name].append(batch)
                queries.publish(IN, batch if place % 2 else [*in_columns(batch)])
            elif isinstance(act, str):
                getattr(killed, act)()
            elif open_ := queries.queries():
                killed.settle()
                running = open_[act % len(open_)]
                answers[running.name] = rows(running)
                queries.deregister(running.name)
        killed.settle()
        answers |= {running.name: rows(running) for running in killed.queries.queries()}
    assert answers.keys() == asks.keys()
    for name, request in asks.items():
        assert answers[name] == alone(request, seen[name]), name


READER = (
    """SELECT * FROM NAMED WINDOW <urn:w> ON <%s> [RANGE PT2S STEP PT1S] WHERE { WINDOW <urn:w> { ?o <urn:of> ?s } }"""
)


@examples(4, prove=1000)
@given(st.lists(batches | ends, min_size=4, max_size=30))
@example([*ROUND, "hold", *ROUND, "kill", *ROUND, "stop", *ROUND])
def test_a_reader_gets_each_answer_of_a_query_in_a_shared_session_once(acts):
    with killed_service() as killed:
        first, writer = (killed.queries.register(request) for request in (SAME[0], constructed("ISTREAM")))
        assert writer.worker is first.worker
        request, output = QueryRegistration(READER % writer.question.output, dialect="rspql"), writer.question.output
        reader = killed.queries.register(request)
        for place, act in enumerate(acts):
            if isinstance(act, str):
                getattr(killed, act)()
            else:
                killed.queries.publish(IN, [replace(item, time=item.time + place * 400) for item in act])
        killed.settle()
        written, read = (rows(killed.queries.query(running.name)) for running in (writer, reader))
        assert killed.queries.query(writer.name).worker is killed.queries.query(first.name).worker
    assert read == alone(request, [[as_element(answer, output, 0)] for _, answer in written], output)


def test_queries_that_began_at_different_times_share_a_session_once_no_window_holds_what_one_has_not_seen():
    with killed_service() as killed:
        for at in range(4):
            killed.queries.register(SAME[at])
            killed.queries.publish(IN, many("a p b.", 5))
        killed.queries.publish(IN, [element(30_000 + 500 * at) for at in range(20)])
        killed.settle()
        killed.queries.publish(IN, [element(40_000)])  # how far queries have come is written with what comes next
        killed.kill()
        killed.settle()
        (groups,) = {id(one.worker): one.worker._groups for one in killed.queries.queries()}.values()
        assert [len(group.evaluations) for group in groups] == [4]
