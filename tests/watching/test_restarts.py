"""What happens between two runs on one state: each case goes on as it should, or is refused by a sentence."""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from streamgauge.engines import load
from streamgauge.formats.lines import encode_element
from streamgauge.formats.streams import Reading
from streamgauge.model.element import StreamElement
from streamgauge.model.mistake import MistakeError
from streamgauge.servers.queries.durability import ServiceJournal
from streamgauge.servers.queries.registry import Queries
from streamgauge.servers.queries.requests import QueryRegistration
from streamgauge.sources import SourceError
from streamgauge.watching import watch

QUERY = """SELECT (COUNT(*) AS ?n) FROM NAMED WINDOW <urn:w> ON <urn:in> [RANGE PT4S STEP PT1S]
WHERE { WINDOW <urn:w> { ?s <urn:p> ?v } }"""


def elements(seconds: Sequence[int]) -> list[StreamElement]:
    """An element each second, longer than a tenth of the bytes by which a file is recognised."""
    return [
        StreamElement("urn:in", 1000 * second, second, ((f"<urn:{second}>", "<urn:p>", f'"{second:030}"'),))
        for second in seconds
    ]


def lines(seconds: Sequence[int]) -> bytes:
    return b"".join(map(encode_element, elements(seconds)))


def counts(source: Any, state: Path, until: int | None = None, **options: Any) -> dict[int, str]:
    """The counts by their instants (s), up to an instant, and gaps as notes."""
    answers = dict[int, str]()
    with watch(QUERY, source, state=state, end="stream", **options) as watched:
        for answer in watched:
            answers[answer.instant // 1000] = answer.added[0][0].split('"')[1]
            if answer.instant // 1000 == until:
                watched.settle()
                break
    return answers


def test_a_file_with_fewer_elements_than_were_read_is_refused(tmp_path):
    log = tmp_path / "log.jsonl"
    log.write_bytes(lines(range(1, 10)))
    assert [*counts(str(log), tmp_path / "state")] == [4, 5, 6, 7, 8, 9]
    log.write_bytes(lines(range(1, 6)))
    with pytest.raises(SourceError, match="9 elements of it had been read, and it has 5 now: put back the file"):
        counts(str(log), tmp_path / "state")
    log.unlink()
    with pytest.raises(SourceError, match=r"log\.jsonl: there is no such file or folder"):
        counts(str(log), tmp_path / "state")
    log.write_bytes(lines(range(1, 12)))
    assert counts(str(log), tmp_path / "state") == {10: "4", 11: "4"}


def test_a_followed_file_that_was_cut_and_has_grown_beyond_the_place_is_read_from_its_beginning(tmp_path):
    """Its first lines are those of before, so that only the bytes before the place show it."""
    log, notes = tmp_path / "log.jsonl", list[str]()
    log.write_bytes(lines(range(1, 9)))
    counts(f"{log}?follow=1", tmp_path / "state", until=6, lateness="1s")
    with log.open("ab") as file:
        file.write(lines(range(9, 11)))
    assert counts(f"{log}?follow=1", tmp_path / "state", until=8, lateness="1s") == {7: "4", 8: "4"}
    log.write_bytes(lines((*range(1, 8), *range(11, 20))))
    how = Reading(note=notes.append)
    after = counts(f"{log}?follow=1", tmp_path / "state", until=15, lateness="1s", reading=how)
    assert (after[14], after[15]) == ("4", "4")
    assert [note.partition(": the file that was read up to byte")[1] != "" for note in notes] == [True]


def test_a_list_that_begins_again_leaves_no_gap_and_one_that_goes_on_later_does(tmp_path):
    notes = list[str]()
    for seconds in (range(1, 6), range(1, 9), range(12, 15)):
        counts(elements(seconds), tmp_path, reading=Reading(note=notes.append))
    why = "what came while nobody read cannot be read again"
    assert notes == [f"something to iterate over: elements from 8,000 ms to 12,000 ms may be missing: {why}"]


def test_another_source_is_read_from_its_beginning_and_says_so(tmp_path):
    log, moved, notes = tmp_path / "log.jsonl", tmp_path / "moved.jsonl", list[str]()
    log.write_bytes(lines(range(1, 6)))
    counts(str(log), tmp_path / "state")
    log.rename(moved)
    with moved.open("ab") as file:
        file.write(lines(range(6, 8)))
    for expected in ({6: "4", 7: "4"}, {}):
        assert counts(str(moved), tmp_path / "state", reading=Reading(note=notes.append)) == expected
    assert notes == [f"{moved}: read from the beginning, as what this state has read is {log}"]


def service(folder: Path) -> Queries:
    return Queries(load, ("live",), journal=ServiceJournal(folder, time.monotonic))


def test_states_of_watches_and_services_are_not_each_others(tmp_path):
    counts(elements(range(1, 6)), tmp_path / "watch")
    with pytest.raises(MistakeError, match="watch is the state of a `query` or `watch`: name another folder"):
        service(tmp_path / "watch")
    assert counts(elements(range(6, 8)), tmp_path / "watch") == {6: "4", 7: "4"}
    queries = service(tmp_path / "service")
    queries.register(QueryRegistration(QUERY))
    queries.close("over")
    with pytest.raises(MistakeError, match="service is the state of a service: name another folder"):
        counts(elements(range(1, 6)), tmp_path / "service")


def test_a_folder_that_cannot_be_a_state_is_refused_with_what_to_do(tmp_path):
    (tmp_path / "file").write_text("something")
    with pytest.raises(MistakeError, match="file: no state can be kept here: it is a file: name a folder"):
        counts(elements(range(1, 6)), tmp_path / "file")
    with watch(QUERY, elements(range(1, 6)), state=tmp_path / "used") as first:
        next(first)
        with pytest.raises(MistakeError, match="here: another process has it open: end that one, or name another"):
            counts(elements(range(1, 6)), tmp_path / "used")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
def test_a_state_of_another_user_is_refused(tmp_path):
    counts(elements(range(1, 6)), tmp_path / "state")
    for folder in (tmp_path, *tmp_path.parents[:3]):
        folder.chmod(folder.stat().st_mode | 0o111)
    os.seteuid(65534)
    try:
        with pytest.raises(MistakeError, match="no journal can be kept here: this user has no permission for that"):
            counts(elements(range(1, 6)), tmp_path / "state")
    finally:
        os.seteuid(0)
