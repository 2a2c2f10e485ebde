"""Runs in a folder: each is done once, and what cannot be done is said."""

import pytest

from streamgauge.suites.sepbm import recordings
from streamgauge.suites.sepbm.runner import RunPlan, SeriesRun, is_finished, run_series
from tests.suites.sepbm.stored import SMALL, stored


@pytest.mark.slow
def test_runs_are_done_once_and_what_cannot_be_done_is_said(tmp_path):
    folder = stored(tmp_path / "conf").folder
    plan = RunPlan(channels=("named",), first=3)
    first = SeriesRun("together/incremental", folder, "broker_inprocess", {"strategy": "incremental"}, plan)
    absent = SeriesRun("systems/none", folder, "none")
    messages: list[str] = []
    lacking = run_series([first, absent], tmp_path / "runs", lambda what, _share: messages.append(what))
    assert is_finished(first, tmp_path / "runs")
    assert list(lacking) == ["systems/none"]
    assert "unknown system none" in lacking["systems/none"]
    result = recordings.read(tmp_path / "runs" / first.name)
    assert (result.channels, len(result.published)) == (("named",), 3)
    messages.clear()
    assert run_series([first], tmp_path / "runs", lambda what, _share: messages.append(what)) == {}
    assert messages == []
    assert recordings.read(tmp_path / "runs" / first.name) == result
    assert len(SMALL.publications) > len(result.published)
