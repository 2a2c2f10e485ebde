"""Notification time and throughput: the paper's figures 1 and 2, and what they leave out, as data."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from streamgauge.suites.sepbm import DueRows, PublicationRecord, ReceivedNotification, SepbmRecording
from streamgauge.suites.sepbm.analysis import Analysis, ChangeKind, analyse, by_channel, in_effect, score, throughput

CASES = sorted((Path(__file__).parent / "cases").glob("*.toml"))
MS = 1_000_000


def _due(number: int, channel: str, row: str) -> DueRows:
    gone = row.startswith("-")
    rows = ((row.removeprefix("-"),),)
    return DueRows(channel, number, () if gone else rows, rows if gone else ())


def _recording(case: dict[str, Any]) -> SepbmRecording:
    published = tuple(
        PublicationRecord(number, called * MS, done * MS, *known) for number, called, done, *known in case["published"]
    )
    heard = tuple(
        ReceivedNotification(channel, (number,) if number else (), ((row,),), (), received * MS, made * MS)
        for number, channel, row, made, received in case["told"]
    )
    return SepbmRecording("none", {}, ("c",), published, heard, (), 0, 0.0)


def _analysed(case: dict[str, Any]) -> Analysis:
    return analyse([_due(*item) for item in case["due"]], _recording(case))


@pytest.mark.parametrize("file", CASES, ids=lambda file: file.stem)
def test_metrics_are_the_papers(file: Path) -> None:
    case = tomllib.loads(file.read_text())
    analysis, expected = _analysed(case), case["expected"]
    result = score(analysis)
    assert result.notified is not None
    assert result.received is not None
    assert {delivery.event.row[0]: (delivery.notified or 0) / MS for delivery in analysis.delivered} == expected[
        "times"
    ]
    assert result.notified.mean == pytest.approx(expected["mean"])
    assert (result.notified.p50, result.notified.most) == (expected["p50"], expected["most"])
    assert result.received.mean == pytest.approx(expected["received"])
    assert [delivery.event.row[0] for delivery in analysis.delivered if delivery.deferred] == expected["deferred"]
    signs = {ChangeKind.NEW: "", ChangeKind.RETRACTED: "-"}
    assert [signs[event.kind] + (event.row[0] or "") for event in analysis.missed] == expected["missed"]
    assert [event.row[0] for event in analysis.surplus if event.channel == "c"] == expected["surplus"]
    interval = [border * MS for border in case["interval"]] if "interval" in case else None
    done = throughput(analysis, interval=(interval[0], interval[1]) if interval else None)
    assert (done.complete, done.rate) == (expected["complete"], pytest.approx(expected["rate"]))


def test_retractions_are_counted_by_themselves() -> None:
    published = (PublicationRecord(1, 0, 10 * MS), PublicationRecord(2, 10 * MS, 20 * MS))
    heard = (
        ReceivedNotification("c", (), (("r",),), (), 5 * MS, 4 * MS),
        ReceivedNotification("c", (), (), (("r",),), 19 * MS, 18 * MS),
    )
    analysis = analyse(
        [_due(1, "c", "r"), _due(2, "c", "-r")], SepbmRecording("none", {}, ("c",), published, heard, (), 0, 0.0)
    )
    new, gone = (score(analysis, kind=kind).notified for kind in ChangeKind)
    assert new is not None
    assert gone is not None
    assert (new.notifications, new.mean, gone.notifications, gone.mean) == (1, 4.0, 1, 8.0)


def test_a_channel_by_itself_and_publications_that_let_nothing_come() -> None:
    case = tomllib.loads((Path(__file__).parent / "cases" / "figure2.toml").read_text())
    recording = _recording(case)
    result = by_channel(_analysed(case))
    assert list(result) == list(recording.channels)
    assert result["c"] == score(_analysed(case))
    assert score(_analysed(case), channels=()).throughput.complete == len(recording.published)


def test_a_cause_that_is_another_publication_is_counted() -> None:
    published = (PublicationRecord(1, 0, 10 * MS, 7), PublicationRecord(2, 10 * MS, 20 * MS, 8))
    heard = (ReceivedNotification("c", (8,), (("r",),), (), 15 * MS),)
    result = score(analyse([_due(1, "c", "r")], SepbmRecording("none", {}, ("c",), published, heard, (), 0, 0.0)))
    assert (result.delivered, result.miscaused, result.notified) == (1, 1, None)


def test_publications_take_effect_by_number_else_by_acknowledgement() -> None:
    numbered = (PublicationRecord(1, 0, 10, 5), PublicationRecord(2, 1, 9, 6), PublicationRecord(3, 2, 8, 4))
    assert [item.number for item in in_effect(numbered)] == [3, 1, 2]
    silent = tuple(item._replace(known_as=None) for item in numbered)
    assert [item.number for item in in_effect(silent)] == [3, 2, 1]
