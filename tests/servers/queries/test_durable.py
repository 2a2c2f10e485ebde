"""A service with a state: killed anywhere and begun again, its queries give the answers that they would have given."""

import json
import random
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from streamgauge.engines import load
from streamgauge.formats.lines import Advance, Input, encode_element
from streamgauge.model.element import StreamElement
from streamgauge.servers.durable.journal import FILE, verify
from streamgauge.servers.http.metrics import source_metrics
from streamgauge.servers.http.retries import RetryKey
from streamgauge.servers.queries.attached import AttachedSources
from streamgauge.servers.queries.durability import NotDurableError, ServiceJournal
from streamgauge.servers.queries.limits import QueryLimits
from streamgauge.servers.queries.measures import metrics
from streamgauge.servers.queries.registered import RegisteredQuery
from streamgauge.servers.queries.registry import Queries
from streamgauge.servers.queries.requests import QueryRegistration
from streamgauge.servers.sealed.soundness import JournalError, NotWrittenError
from streamgauge.sources import SourceError
from tests.servers import damages
from tests.servers.queries.asks import IN, OUT, construct, element, select

Items = list[tuple[str, Input]]


def begun(state: Path | None) -> Queries:
    journal = None if state is None else ServiceJournal(state, time.monotonic)
    return Queries(load, ("live",), clock=lambda: 0, journal=journal)


def asked(draw: random.Random) -> list[QueryRegistration]:
    """Queries of several windows and operators, one over the answers of another, and two that ask the same."""
    sizes = [draw.randrange(1, 9) for _ in range(4)]
    window = (
        f"SELECT ?s ?o FROM NAMED WINDOW <urn:w> ON <{IN}> [RANGE PT%dS STEP PT%dS] "
        "WHERE { WINDOW <urn:w> { ?s ?p ?o } }"
    )
    texts = [
        select(size=sizes[0]),
        "REGISTER ISTREAM <urn:i> AS " + window % (sizes[1] + 2, draw.randrange(1, sizes[1] + 2)),
        construct(),
        select(stream=OUT, size=sizes[2]),
        select(size=sizes[0]),
    ]
    late = draw.choice((None, 0, 1500))
    profiles = [draw.choice((None, "csparql", "cqels", "rspql")) if at != 1 else None for at in range(len(texts))]
    return [
        QueryRegistration(text, semantics=named, lateness=late) for text, named in zip(texts, profiles, strict=True)
    ]


def published(draw: random.Random, count: int) -> Items:
    """Elements with pauses, and what is said of time now and then."""
    now, items = 0, Items()
    for number in range(count):
        now += draw.choice((0, 300, 700, 1000, 12_000 if draw.random() < 0.1 else 400))
        triple = (f"<urn:{draw.randrange(3)}>", "<urn:p>", f'"{draw.randrange(4)}"')
        items.append((IN, StreamElement(IN, now, number, (triple,))))
        if draw.random() < 0.1:
            items.append((IN, Advance(now - 2000)))
    return items


def told(queries: Queries) -> dict[str, dict[int, object]]:
    """The answers by query and number, rows in order."""
    assert queries.settle(60)
    if queries.journal is not None:
        queries.journal.wait(queries.journal.ticket(), 60)
    return {query.name: answers(query) for query in queries.queries()}


def answers(query: RegisteredQuery) -> dict[int, object]:
    return {kept.number: "".join(sorted(kept.line.decode())) for kept in query.answers.kept()}


class Course:
    """What is registered and published at each step: some queries at the beginning, some later."""

    def __init__(self, seed: int, steps: int = 150) -> None:
        self.draw = random.Random(seed)
        self._requests, self.items = asked(self.draw), published(self.draw, steps)
        self._late = self.draw.randrange(1, len(self.items))

    def step(self, queries: Queries, at: int) -> None:
        if at in (0, self._late):
            assert queries.settle(60)  # what a query reads of another's answers begins at the same one
            for request in self._requests[:3] if at == 0 else self._requests[3:]:
                queries.register(request)
        stream, item = self.items[at]
        queries.publish(stream, [item])

    def expected(self) -> dict[str, dict[int, object]]:
        """The answers of a service that keeps nothing and is not killed."""
        queries = begun(None)
        for at in range(len(self.items)):
            self.step(queries, at)
        expected = told(queries)
        queries.close("over")
        return expected


@pytest.mark.parametrize("seed", range(3))
def test_a_service_that_was_killed_gives_the_same_answers(tmp_path, seed):
    course = Course(seed)
    kills = {course.draw.randrange(len(course.items)) for _ in range(3)}
    queries, states = begun(tmp_path / "0"), [tmp_path / "0"]
    for at in range(len(course.items)):
        course.step(queries, at)
        if at in kills:
            states.append(tmp_path / str(len(states)))
            shutil.copytree(states[-2], states[-1])  # as kill -9 leaves it
            before, queries = queries, begun(states[-1])
            before.close("killed")
    assert told(queries) == course.expected()
    queries.close("over")


@pytest.fixture(scope="module")
def stopped(tmp_path_factory) -> tuple[Path, Path, dict[str, dict[int, object]]]:
    """The state of a service that was stopped, one from before, and the answers of one that goes on from it."""
    folder, course = tmp_path_factory.mktemp("stopped"), Course(1)
    queries = begun(folder / "state")
    for at in range(100):
        course.step(queries, at)
        if at == 50:
            shutil.copytree(folder / "state", folder / "older")
    told(queries)
    queries.close("stopped")
    shutil.copytree(folder / "state", folder / "plain")
    return folder / "state", folder / "older", told_on(folder / "plain")


def told_on(state: Path) -> dict[str, dict[int, object]]:
    """The answers of a service that goes on with a state."""
    queries, course = begun(state), Course(1)
    for at in range(100, len(course.items)):
        course.step(queries, at)
    answers = told(queries)
    queries.close("over")
    return answers


@pytest.mark.parametrize(
    "seed", [*range(12), *(pytest.param(seed, marks=pytest.mark.prove) for seed in range(12, 200))]
)
def test_a_damaged_state_is_refused_or_goes_on_as_before(tmp_path, stopped, seed):
    state, older, expected = stopped
    draw, damaged = random.Random(seed), tmp_path / "state"
    shutil.copytree(state, damaged)
    files = sorted(file.name for file in damaged.iterdir())
    kinds = (*(kind.__name__ for kind in damages.IN_PLACE), "missing", "older")
    done = damages.damage(damaged, files, {"older": older}, draw, kinds[seed % len(kinds)])
    verified = not (damaged / FILE).exists() or not verify(damaged).whole
    refusal, answers = went_on(damaged)
    assert answers == expected or (verified and str(damaged) in refusal and "\n" not in refusal), (done, refusal)


def went_on(state: Path) -> tuple[str, dict[str, dict[int, object]]]:
    """Why a state is refused, or the answers of a service that goes on with it."""
    try:
        return "", told_on(state)
    except JournalError as error:
        return str(error), {}


def by_the_clock(folder: Path, seed: int, kills: set[int]) -> dict[str, dict[int, object]]:
    """The answers of queries for which time passes by a clock that jumps to and fro, by a service killed at steps."""
    draw, now = random.Random(seed), 0

    def serving(state: Path) -> Queries:
        return Queries(load, ("live",), clock=lambda: now, journal=ServiceJournal(state, time.monotonic))

    queries, states = serving(folder / "0"), [folder / "0"]
    for text in (select(), "REGISTER ISTREAM <urn:i> AS " + select(size=5)):
        queries.register(QueryRegistration(text, lateness=2000, advance="wall"))
    for at, (stream, item) in enumerate(published(draw, 60)):
        now = item.time + draw.choice((0, 500, 1500, 20_000 if draw.random() < 0.2 else 0, -3_600_000))
        queries.tick()
        queries.publish(stream, [item])
        if at in kills:
            states.append(folder / str(len(states)))
            shutil.copytree(states[-2], states[-1])
            before, queries = queries, serving(states[-1])
            before.close("killed")
    answers = told(queries)
    queries.close("over")
    return answers


@pytest.mark.parametrize("seed", range(2))
def test_a_clock_that_jumps_changes_nothing_for_a_killed_service(tmp_path, seed):
    expected = by_the_clock(tmp_path / "whole", seed, set())
    assert sum(map(len, expected.values())) > 20
    assert by_the_clock(tmp_path / "killed", seed, {7, 30, 31}) == expected


def test_a_full_disk_refuses_and_goes_on_with_what_was_taken(tmp_path):
    course = Course(2)
    queries = begun(tmp_path / "0")
    database, full = queries.journal.state._journal._database, False
    for at in range(len(course.items)):
        if at == 70:
            assert queries.settle(60)
            (pages,) = database.execute("PRAGMA page_count").fetchone()
            database.execute(f"PRAGMA max_page_count = {pages}")
        full |= not taken(course, queries, at, lambda: database.execute("PRAGMA max_page_count = 1000000"))
    assert (full, told(queries)) == (True, course.expected())
    queries.close("over")
    after = begun(tmp_path / "0")
    assert told(after) == course.expected()
    after.close("over")


def taken(course: Course, queries: Queries, at: int, widen: Callable[[], object]) -> bool:
    """Whether a step was taken at once; where the disk is full it is, or is made again, once there is room."""
    try:
        course.step(queries, at)
    except (NotDurableError, NotWrittenError) as error:
        assert "the disk is full" in str(error)  # noqa: PT017
        with pytest.raises(NotWrittenError, match="full"):
            queries.publish(IN, [element(10**6)])
        widen()
        until(lambda: not queries.journal.trouble)
        if isinstance(error, NotWrittenError):
            course.step(queries, at)
        return False
    return True


def test_keys_of_publications_and_shared_data_are_known_to_the_next_service(tmp_path):
    queries = begun(tmp_path)
    queries.share("urn:data", (("<urn:a>", "<urn:b>", "<urn:c>"),))
    key = RetryKey("me", "k", b"digest")
    queries.publish(IN, [element(1)], noted=lambda readers: queries.journal.keep_key(key, 1, readers))
    queries.close("over")
    after = begun(tmp_path)
    assert after.journal.known_keys() == [(key, 1, 0)]
    assert (after._shared, after.streams()) == ({"urn:data": (("<urn:a>", "<urn:b>", "<urn:c>"),)}, {IN: 1})
    after.close("over")


def test_a_query_goes_on_beside_the_shared_data_that_it_began_with(tmp_path):
    """Newer data are for queries registered later; what no query reads any more is not kept."""
    text = f"SELECT ?s ?r FROM <urn:data> FROM NAMED WINDOW <urn:w> ON <{IN}> [RANGE PT4S STEP PT1S] "
    text += "WHERE { WINDOW <urn:w> { ?s <urn:p> ?o } ?s <urn:in> ?r }"
    queries = begun(tmp_path / "a")
    for room in "rt":
        queries.share("urn:data", (("<urn:a>", "<urn:in>", f"<urn:{room}>"),))
        queries.register(QueryRegistration(text))
    for second in range(3):
        queries.publish(IN, [element(1000 * second, "a p b.")])
    told(queries)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    queries.close("killed")
    queries = begun(tmp_path / "b")
    queries.publish(IN, [element(9000, "a p b.")])
    told(queries)
    for query, room in zip(queries.queries(), (b"urn:r", b"urn:t"), strict=True):
        lines = [kept.line for kept in query.answers.kept() if b"urn:a" in kept.line]
        assert len(lines) == 3
        assert all(room in line for line in lines)
        queries.deregister(query.name)
    assert queries.journal.state.records("beside") == {}
    queries.close("over")


def test_a_service_that_attached_a_file_goes_on_where_it_was(tmp_path):
    lines = [encode_element(element(1000 * second, f"a{second} p b.")) for second in range(30)]
    (tmp_path / "log.jsonl").write_bytes(b"".join(lines[:20]))

    def attached() -> tuple[Queries, AttachedSources]:
        queries = begun(tmp_path / "state")
        sources = AttachedSources(queries, [f"file:{tmp_path}"])
        sources.restore()
        return queries, sources

    queries, sources = attached()
    queries.register(QueryRegistration(select()))
    sources.attach(IN, f"file:{tmp_path}/log.jsonl?follow=1")
    until(lambda: queries.streams()[IN] == 20)
    sources.close()
    queries.close("over")
    (tmp_path / "log.jsonl").rename(tmp_path / "log.jsonl.1")
    (tmp_path / "log.jsonl").write_bytes(b"".join(lines[20:]))
    queries, sources = attached()
    until(lambda: queries.streams()[IN] == 30)
    assert len(told(queries)["q1"]) == 14
    assert sources.status()[IN].get("gap") is None
    measured = {metric.name: metric for metric in (*metrics(queries), *source_metrics(sources.status(), "stream"))}
    until(lambda: sources.status()[IN]["lag"] == -29_000)  # the clock of this service stands still at 0
    assert measured["streamgauge_state_items"].values == (({}, queries.journal.state.kept_items),)
    assert measured["streamgauge_source_gaps"].values == (({"stream": IN}, 0.0),)
    sources.close()
    queries.close("over")


class Once:
    """A source that cannot be read again: elements of some seconds."""

    refused, reasons = 0, ()

    def __init__(self, seconds: range) -> None:
        self._seconds = seconds

    def items(self) -> Iterator[Input]:
        return (element(1000 * second, f"a{second} p b.") for second in self._seconds)

    def close(self) -> None:
        self._seconds = range(0)


def test_answers_state_the_gap_that_a_source_left_which_cannot_be_read_again(tmp_path):
    """Of windows of 2 s those are touched that hold a time from 4 to 9 s, also when the service is begun once more."""
    lives, gap = (range(5), range(9, 12), range(12, 16)), {"from": 4000, "to": 9000}
    lines: dict[int, dict[str, Any]] = {}
    for seconds in lives:
        queries = begun(tmp_path)
        sources = AttachedSources(queries, ["tick:once"], lambda _url, _reading, seconds=seconds: Once(seconds))
        if seconds == lives[0]:
            queries.register(QueryRegistration(select()))
            sources.attach(IN, "tick:once")
        else:
            sources.restore()
        until(lambda sources=sources: sources.status()[IN]["ended"])
        told(queries)
        for kept in queries.queries()[0].answers.kept():
            answer = json.loads(kept.line)
            assert lines.setdefault(kept.number, answer) == answer
        assert sources.status()[IN].get("gap") == {4: None, 11: gap, 15: {"from": 11_000, "to": 12_000}}[seconds[-1]]
        sources.close()
        queries.close("over")
    stated = {answer["instant"] // 1000: answer.get("gaps", ()) for answer in lines.values()}
    first = {"source": "tick:once", **gap}
    assert stated[2] == stated[4] == ()
    assert all(stated[instant] == [first] for instant in stated if 5 < instant <= 10)
    assert stated[12] == stated[14] == [{"source": "tick:once", "from": 11_000, "to": 12_000}]


def until(met: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not met():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.02)


def test_a_query_that_failed_is_registered_again_with_its_failure(tmp_path):
    """One too large for its limit, beside one that goes on: it answers nothing more, until it is deregistered."""
    large, small = select(size=100), select(size=1)

    def limited() -> Queries:
        journal = ServiceJournal(tmp_path, time.monotonic)
        return Queries(load, ("live",), QueryLimits(memory=2**20), clock=lambda: 0, journal=journal)

    queries = limited()
    for text in (large, small):
        queries.register(QueryRegistration(text))
    triples = " ".join(f"s{number} p o." for number in range(2000))
    for second, text in ((0, "a p b."), (101, triples), (104, triples)):
        queries.publish(IN, [element(1000 * second, text)])
    before, fault = told(queries), queries.query("q1").fault
    assert ("more than 1 MiB" in fault, len(before["q1"])) == (True, 1)
    queries.close("over")
    for second in (200, 300):
        queries = limited()
        queries.publish(IN, [element(1000 * second)])
        assert (queries.query("q1").state, queries.query("q1").fault) == ("ended", fault)
        after = told(queries)
        assert (after["q1"], max(after["q2"])) == (before["q1"], second)
        queries.close("over")
    queries = limited()
    queries.deregister("q1")
    assert queries.journal.state.records("over") == {}
    assert [running.state for running in queries.queries()] == ["running"]
    queries.close("over")


def test_a_state_has_no_secrets_of_sources(tmp_path):
    """A client names a file that has it; what the operator names comes with its secret at each start."""
    url, opened = "tick://me:hush@host/once", list[str]()

    def attached() -> tuple[Queries, AttachedSources]:
        queries = begun(tmp_path)
        sources = AttachedSources(queries, ["tick://me@host"], lambda url, _reading: opened.append(url) or Once([1]))
        sources.restore()
        return queries, sources

    queries, sources = attached()
    with pytest.raises(SourceError, match=r"tick://me:\.\.\.@host/once: the state .* no secrets: .* password_file="):
        sources.attach(IN, url)
    assert (opened, queries.journal.state.records("source")) == ([], {})
    sources.keep([(IN, url)])
    until(lambda: sources.status()[IN]["ended"])
    sources.close()
    queries.close("over")
    assert not any(b"hush" in file.read_bytes() for file in tmp_path.iterdir())
    queries, sources = attached()
    assert (opened, queries.journal.state.records("source")[IN]["url"]) == ([url], "tick://me:...@host/once")
    sources.keep([(IN, url.replace("hush", "other"))])
    until(lambda: sources.status()[IN]["ended"])
    assert sources.status()[IN]["gap"] == {"from": 1000, "to": 1000}, "it goes on as the source that it was"
    sources.close()
    queries.close("over")


def test_a_source_that_the_operator_no_longer_names_is_not_attached_again(tmp_path):
    opened = list[str]()
    for sources_of_run in ([(IN, "tick:once")], [], []):
        queries = begun(tmp_path)
        sources = AttachedSources(queries, [], lambda url, _reading: opened.append(url) or Once([1]))
        sources.restore()
        sources.keep(sources_of_run)
        assert [*sources.status()] == [stream for stream, _ in sources_of_run]
        until(lambda sources=sources: all(one["ended"] for one in sources.status().values()))
        sources.close()
        queries.close("over")
    assert opened == ["tick:once"]
