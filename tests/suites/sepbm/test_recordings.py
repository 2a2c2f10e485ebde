"""Recordings on disk: what is written is read back, and a channel's folder is a run like any other."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.formats.run import read_run, stream_path
from streamgauge.model.element import StreamElement
from streamgauge.model.run import Sample
from streamgauge.model.verdict import Judgement
from streamgauge.oracle.expected.reports import definition
from streamgauge.oracle.judging.oracle import JudgingRules, check
from streamgauge.query import parse
from streamgauge.suites.sepbm import (
    STREAM,
    CountedNotification,
    PublicationRecord,
    ReceivedNotification,
    SepbmRecording,
    recordings,
)
from streamgauge.suites.sepbm.recordings import RecordingError
from streamgauge.suites.sepbm.runner import RunPlan, run
from tests.examples import examples
from tests.reasoning.naive import closure
from tests.servers.broker.world import BASE, RULES
from tests.suites.sepbm.small import NAMES, Small

SMALL = Small()
NUMBERS = st.integers(1, 2**62)
TERMS = st.sampled_from(["<urn:t:a>", '"b"', '"\\n"@en', "_:c", None])
WIDTHS = {channel.name: len(channel.variables) for channel in SMALL.channels}


@st.composite
def heard(draw, channels):
    name = draw(st.sampled_from(channels))
    rows = st.lists(st.tuples(*[TERMS] * WIDTHS[name]), max_size=2).map(tuple)
    made = draw(st.one_of(st.none(), NUMBERS))
    return ReceivedNotification(
        name, tuple(draw(st.lists(NUMBERS, max_size=2))), draw(rows), draw(rows), draw(NUMBERS), made
    )


@st.composite
def drawn_recordings(draw):
    channels = tuple(sorted(draw(st.sets(st.sampled_from(NAMES), min_size=1))))
    known = draw(st.one_of(st.just(st.none()), st.just(NUMBERS)))
    count = draw(st.integers(0, len(SMALL.publications)))
    published = tuple(PublicationRecord(n, draw(NUMBERS), draw(NUMBERS), draw(known)) for n in range(1, count + 1))
    said = draw(st.lists(heard(channels), max_size=4))
    beside = st.builds(
        CountedNotification, st.sampled_from(channels), st.integers(1, 9), st.tuples(NUMBERS), NUMBERS, NUMBERS
    )
    return SepbmRecording(
        draw(st.text()),
        draw(st.dictionaries(st.text(), st.text(), max_size=2)),
        channels,
        published,
        tuple(sorted(said, key=lambda item: (item.received, channels.index(item.channel)))),
        tuple(
            draw(st.lists(st.builds(Sample, NUMBERS, NUMBERS, st.floats(0, 9), st.floats(0, 9), NUMBERS), max_size=2))
        ),
        draw(NUMBERS),
        draw(st.floats(0, 1e6)),
        draw(st.integers(1, 100)),
        draw(st.one_of(st.none(), st.floats(0.1, 1e6))),
        draw(st.one_of(st.none(), st.text())),
        draw(st.integers(1, 9)),
        tuple(draw(st.lists(beside, max_size=2))),
        draw(st.sampled_from([None, "changes", "definition"])),
    )


@pytest.mark.slow
@examples(8, prove=500)
@given(drawn_recordings())
def test_a_recording_comes_back(tmp_path_factory, recording):
    folder = tmp_path_factory.mktemp("recording")
    recordings.write(folder, recording, SMALL)
    assert recordings.read(folder) == recording


def facts():
    """The closure's facts with the states in which they stand, from scratch, as a stream."""
    held, states = set(BASE), [set(closure(RULES, BASE))]
    for publication in SMALL.publications:
        held = held - set(publication.removed) | set(publication.added)
        states.append(set(closure(RULES, held)))
    result, number = [], 0
    for at, now in enumerate(states):
        for fact in sorted(now - (states[at - 1] if at else set())):
            end = next((later for later in range(at, len(states)) if fact not in states[later]), None)
            result.append(StreamElement(STREAM, at, number, (fact,), (), end))
            number += 1
    return result


def recording():
    return run(SMALL, "broker_inprocess", {}, RunPlan())


def verdicts(folder):
    for name in NAMES:
        parsed = read_run(folder / "channels" / name, parse)
        yield name, check(parsed, definition(stream_path(folder / "channels" / name)), 0, JudgingRules())


def test_a_channel_is_judged_as_a_run_like_any_other(tmp_path):
    heard = recording()
    recordings.write(tmp_path, heard, SMALL)
    recordings.write_facts(tmp_path, facts())
    assert recordings.read(tmp_path) == heard
    for name, verdict in verdicts(tmp_path):
        assert (verdict.judgement, verdict.precision, verdict.recall) == (Judgement.RIGHT, 1.0, 1.0), name


def test_what_a_channel_was_not_told_is_missed(tmp_path):
    heard = recording()
    kept = tuple(message for message in heard.heard if message.channel != "named")
    recordings.write(tmp_path, replace(heard, heard=kept), SMALL)
    recordings.write_facts(tmp_path, facts())
    results = dict(verdicts(tmp_path))
    assert results.pop("named").recall == 0.0
    assert {verdict.judgement for verdict in results.values()} == {Judgement.RIGHT}


def test_an_answer_speaks_of_the_place_of_its_cause(tmp_path):
    odd = SepbmRecording(
        "odd", {}, ("one",),
        (PublicationRecord(1, 10, 30, 8), PublicationRecord(2, 11, 20, 5)),
        (ReceivedNotification("one", (8,), (("<urn:t:a>",),), (), 31),
         ReceivedNotification("one", (5, 99), (), (("<urn:t:a>",),), 32),
         ReceivedNotification("one", (99,), (), (), 33), ReceivedNotification("one", (), (), (), 34)),
        (), 9, 0.0,
    )  # fmt: skip
    recordings.write(tmp_path, odd, SMALL)
    parsed = read_run(tmp_path / "channels" / "one", parse)
    assert [answer.instant for answer in parsed.answers] == [2, 1, None, None]
    assert [(element.sequence, element.time, element.planned) for element in parsed.fed] == [
        (2, 1, 11), (-1, 1, 11), (1, 2, 10), (-1, 2, 10),
    ]  # fmt: skip
    assert parsed.header.advanced_to == 2


def test_a_later_recording_replaces_an_earlier_one(tmp_path):
    heard = recording()
    recordings.write(tmp_path, heard, SMALL)
    recordings.write_facts(tmp_path, facts())
    fewer = replace(
        heard, channels=("one",), heard=tuple(message for message in heard.heard if message.channel == "one")
    )
    recordings.write(tmp_path, fewer, SMALL)
    assert recordings.read(tmp_path) == fewer
    assert [path.name for path in (tmp_path / "channels").iterdir()] == ["one"]
    assert not (tmp_path / "stream.parquet").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda at: (at / "recording.json").unlink(), "recording.json: missing: this is not a folder"),
        (lambda at: (at / "recording.json").write_text("{}"), "field format"),
        (lambda at: (at / "recording.json").write_text(
            '{"format": "streamgauge sepbm recording", "version": 1, "channels": []}'), "field 'system' is missing"),
        (lambda at: (at / "published.parquet" / "part-00000.parquet").write_bytes(b"x"), "published.parquet"),
        (lambda at: (at / "channels/one/causes.parquet/part-00000.parquet").unlink(), "causes.parquet: missing"),
        (lambda at: shutil.rmtree(at / "channels/one/answers.parquet"), "answers.parquet: missing"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(tmp_path, spoil, words):
    recordings.write(tmp_path, recording(), SMALL)
    spoil(Path(tmp_path))
    with pytest.raises(RecordingError, match=words):
        recordings.read(tmp_path)
