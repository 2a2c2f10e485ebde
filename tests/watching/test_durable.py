"""Durable watches: stopped anywhere and begun again they give the answers of a watch that was never stopped."""

import errno
import random
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import Any

import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st

from streamgauge.engines import live
from streamgauge.formats import documents
from streamgauge.formats.lines import Advance, Input, encode_advance, encode_element
from streamgauge.formats.streams import jsonl
from streamgauge.model.answer import Answer
from streamgauge.model.element import StreamElement
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.semantics import Borders, Grain, Semantics
from streamgauge.query import parse, parse_sparql
from streamgauge.semantics.profiles import profile
from streamgauge.semantics.refusal import OutOfOrderError
from streamgauge.servers import durability
from streamgauge.servers.durable.journal import Change
from streamgauge.servers.durable.needs import not_durable
from streamgauge.servers.durable.segments import ItemColumns
from streamgauge.servers.durable.state import SessionState
from streamgauge.servers.queries.sessions import EngineSession
from streamgauge.servers.sealed.soundness import NotWrittenError
from streamgauge.watching import WatchError, durable, watch
from streamgauge.watching.durable import DurableWatch
from tests.examples import examples
from tests.semantics import draw as drawn
from tests.watching.standing import PROFILED, TRIPLES


@dataclass(frozen=True)
class Case:
    """A query over a stream of some hundred elements, and after how many answers a process ends.

    ``seed`` tells which, as ``stream_of`` draws them. They are read in chunks of ``buffered`` bytes, in columns where
    their lines are alike.
    """

    query: ContinuousQuery
    semantics: Semantics
    seed: int
    items: tuple[Input, ...] = field(repr=False)
    ends: tuple[int, ...]
    together: int
    buffered: int


@st.composite
def cases(draw: st.DrawFn) -> Case:
    semantics = draw(st.one_of(drawn.semantics(), st.sampled_from(PROFILED).map(profile)))
    unit = semantics.time_unit
    windows = tuple(durable_window(window, unit) for window in draw(drawn.windows(2)))
    query = draw(drawn.asked(windows, frozenset()))
    query = replace(query, r2s=draw(st.sampled_from([None, *sorted(semantics.r2s_able & frozenset(drawn.CQL))])))
    semantics = replace(semantics, lateness=draw(st.sampled_from([None, None, 0, 3 * unit])))
    assume(not not_durable(query, semantics) and live.refuse(query, semantics) is None)
    randoms = random.Random(seed := draw(st.integers(0, 2**32)))
    items = tuple(stream_of(query, semantics, randoms))
    ends = tuple(randoms.randrange(1, 30) for _ in range(randoms.randrange(1, 4)))
    together, buffered = randoms.choice((1, 2, 7, 30, 1000)), randoms.choice((100, 500, 3000, documents.BUFFER))
    return Case(query, semantics, seed, items, ends, together, buffered)


def durable_window(window: StreamWindow, unit: int) -> StreamWindow:
    """A window of time units, or one of triples that slides by one."""
    size, slide, kind = window.window.size, window.window.slide, window.window.kind
    if kind == "count":
        return replace(window, window=Window(size, 1, kind))
    return replace(window, window=Window(size * unit, slide * unit))


def stream_of(query: ContinuousQuery, semantics: Semantics, randoms: random.Random) -> list[Input]:
    """Elements with pauses, in order or nearly so, and advances among them."""
    time, items = randoms.choice((0, 45_678, 1_772_352_000_000)), list[Input]()
    unit, late, ending = semantics.time_unit, semantics.lateness, randoms.choice((0, 0.1))
    for number in range(randoms.randrange(20, 200)):
        time += unit * randoms.choice((0, 0, 1, 1, 1, 2, 5, 40 if randoms.random() < 0.2 else 1))
        at = time - randoms.choice((0, 0, 1, 4)) * unit if late is not None else time
        added = tuple(dict.fromkeys(randoms.choice(TRIPLES) for _ in range(randoms.randrange(3))))
        until = at + unit * randoms.randrange(1, 6) if randoms.random() < ending else None
        items.append(StreamElement(randoms.choice(query.streams), at, number, added, (), until))
        if randoms.random() < 0.1:
            items.append(Advance(time - (late or 0) - 1))
    return items


def written(items: Sequence[Input], file: Path) -> str:
    lines = [encode_advance(item.time) if isinstance(item, Advance) else encode_element(item) for item in items]
    file.write_bytes(b"".join(lines))
    return str(file)


def told(answer: Answer) -> object:
    return answer.instant, answer.scope, sorted(map(str, answer.added)), sorted(map(str, answer.removed))


def interrupted(case: Case, source: str, folder: Path, **options: Any) -> dict[int, object]:
    """The answers by their numbers where a process ends after so many answers, as by kill -9."""
    answers: dict[int, object] = {}
    for at, end in enumerate((*case.ends, None)):
        state = folder / f"state{at}"
        with watch(case.query, source, state=state, **options) as watched:
            for answer in watched:
                assert answers.setdefault(watched.number, told(answer)) == told(answer)
                if end is not None and len(answers) >= sum(case.ends[: at + 1]):
                    shutil.copytree(state, folder / f"state{at + 1}")
                    break
            else:
                return answers
    raise AssertionError


@given(cases())
@examples(suite=15, prove=5_000)
def test_a_watch_that_was_stopped_gives_the_same_answers(case: Case):
    with TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(durable, "LARGEST", case.together)
        patch.setattr(documents, "BUFFER", case.buffered)
        for limit, value in (("ROWS_FIRST", 0), ("FEW_LINES", 1), ("ONE_BY_ONE", 1)):
            patch.setattr(jsonl, limit, value)
        folder = Path(name)
        source = written(case.items, folder / "stream.jsonl")
        options: dict[str, Any] = {"semantics": case.semantics}
        try:
            expected = uninterrupted(case, **options)
        except OutOfOrderError:
            assume(False)
        answers = interrupted(case, source, folder, **options)
        event(f"{min(len(expected) // 20, 5)} x 20 answers")
        assert sorted(answers) == list(range(1, len(expected) + 1))
        numbered = [(place, answers[number]) for number, (place, _) in enumerate(expected, 1)]
        assert reports(case, numbered) == reports(case, expected)


def uninterrupted(case: Case, **options: Any) -> list[tuple[int, Any]]:
    """The answers of a watch that is never stopped, each with the number of the item that caused it."""
    place = -1

    def items() -> Iterator[Input]:
        nonlocal place
        for item in case.items:
            place += 1
            yield item
        place += 1

    return [(place, told(answer)) for answer in watch(case.query, items(), **options)]


def reports(case: Case, placed: Sequence[tuple[int, Any]]) -> Sequence[Any]:
    """The answers; where each row is one, those of a report in any order, as its rows have none.

    A report is what one item causes at one instant: no row may go from one to another.
    """
    if case.semantics.grain is Grain.REPORT:
        return placed
    groups = groupby(placed, lambda answer: (answer[0], *answer[1][:2]))
    return [(report, sorted(map(str, rows))) for report, rows in groups]


def given_until_refused(source: str, state: Path, answers: dict[int, object], refusal: str) -> None:
    """The answers of a watch whose disk takes nothing from the first one on."""
    with watch(TEXT, source, state=state, **ASKED) as watched:
        database = watched._session._journal._database
        for answer in watched:
            answers[watched.number] = told(answer)
            if len(answers) == 1:
                (pages,) = database.execute("PRAGMA page_count").fetchone()
                database.execute(REFUSALS[refusal] % {"pages": pages})


REFUSALS = {"the disk is full": "PRAGMA max_page_count = %(pages)d", "read-only": "PRAGMA query_only = ON"}


@pytest.mark.parametrize("refusal", REFUSALS)
def test_a_disk_that_refuses_ends_a_watch_that_goes_on_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refusal: str
):
    monkeypatch.setattr(durability, "probe", lambda _folder: errno.EROFS)
    items = [StreamElement("urn:in", at, at, (("<urn:a>", "<urn:p>", f'"{at:0500}"'),)) for at in range(400)]
    source, answers = written(items, tmp_path / "stream.jsonl"), dict[int, object]()
    monkeypatch.setattr(durable, "LARGEST", 20)
    expected = [told(answer) for answer in watch(TEXT, source, **ASKED)]
    with pytest.raises(NotWrittenError, match=refusal):
        given_until_refused(source, tmp_path / "state", answers, refusal)
    assert 0 < len(answers) < len(expected)
    with watch(TEXT, source, state=tmp_path / "state", **ASKED) as watched:
        for answer in watched:
            assert answers.setdefault(watched.number, told(answer)) == told(answer)
    assert answers == dict(enumerate(expected, 1))


TEXT = """SELECT ?s FROM NAMED WINDOW <urn:w> ON <urn:in> [RANGE PT0.01S STEP PT0.01S]
WHERE { WINDOW <urn:w> { ?s <urn:p> ?v } ?s <urn:in> ?room }"""
ASKED: dict[str, Any] = {"semantics": Semantics("mine"), "static": [("<urn:a>", "<urn:in>", "<urn:r>")]}
OTHERS = {
    "a text": (TEXT.replace("urn:p", "urn:q"), {}),
    "a window": (TEXT.replace("STEP PT0.01S", "STEP PT0.005S"), {}),
    "an operator": (TEXT.replace("SELECT", "REGISTER ISTREAM <urn:q> AS SELECT"), {}),
    "a form without a text": (replace(parse(TEXT), form=parse_sparql("ASK { ?s ?p ?o }")), {}),
    "borders": (TEXT, {"semantics": Semantics("mine", borders=Borders.OPEN_CLOSED)}),
    "a first window": (TEXT, {"t0": 5}),
    "as many static facts": (TEXT, {"static": [("<urn:a>", "<urn:in>", "<urn:other>")]}),
}


@pytest.mark.parametrize("other", OTHERS)
def test_a_state_goes_on_with_nothing_but_what_it_was_made_with(tmp_path: Path, other: str):
    stream = [(1, '<urn:a> <urn:p> "1" .'), (30, '<urn:a> <urn:p> "2" .')]
    assert len(list(watch(TEXT, stream, state=tmp_path, **ASKED))) > 1
    assert list(watch(TEXT, [], state=tmp_path, **ASKED)) == []
    text, options = OTHERS[other]
    with pytest.raises(WatchError, match="is the state of another query"):
        watch(text, stream, state=tmp_path, **ASKED | options)


def test_an_interrupted_item_comes_again_with_its_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Ctrl-C and SIGTERM come anywhere: here when an item is noted and the engine has not seen it."""
    items = [StreamElement("urn:in", 5 * at, at, (("<urn:a>", "<urn:p>", f'"{at}"'),)) for at in range(40)]
    source, answers = written(items, tmp_path / "stream.jsonl"), dict[int, object]()
    expected = [told(answer) for answer in watch(TEXT, source, **ASKED)]
    push, count = EngineSession.push, 0

    def interrupted_once(session: EngineSession, element: StreamElement) -> None:
        nonlocal count
        count += 1
        if count == 20:
            raise KeyboardInterrupt
        push(session, element)

    monkeypatch.setattr(EngineSession, "push", interrupted_once)
    for _ in range(2):
        with suppress(KeyboardInterrupt), watch(TEXT, source, state=tmp_path / "state", **ASKED) as watched:
            for answer in watched:
                assert answers.setdefault(watched.number, told(answer)) == told(answer)
    assert answers == dict(enumerate(expected, 1))


def test_a_watch_wakes_for_its_transactions_and_not_in_between(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Each wake-up without an item switches threads, which costs CPU for nothing."""
    written_, waits, until_due = Event(), list[float | None](), DurableWatch.until_due
    write = SessionState.write

    def noted(watched: DurableWatch) -> float | None:
        waits.append(until_due(watched))
        return waits[-1]

    def seen(session: SessionState, change: Change, items: ItemColumns, processed: dict[str, int]) -> None:
        write(session, change, items, processed)
        if len(items.times):
            written_.set()

    def slowly() -> Iterator[tuple[int, str]]:
        yield 1, '<urn:a> <urn:p> "1" .'
        assert written_.wait(60)
        yield 30, '<urn:a> <urn:p> "2" .'

    monkeypatch.setattr(DurableWatch, "until_due", noted)
    monkeypatch.setattr(SessionState, "write", seen)
    assert len(list(watch(TEXT, slowly(), state=tmp_path, **ASKED))) > 1
    # The first element is there in at most QUIET_S; other waits are for sources, not for a time.
    assert 1 <= len(waits) <= 6
    assert all(wait is None or wait <= durable.IDLE_S + durable.WAKING_S for wait in waits)
