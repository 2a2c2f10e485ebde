"""A window opened: its content, what was expected and came, the command; links from plots, the filter, ticks."""

import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from streamgauge import report
from streamgauge.report.series import series_of
from streamgauge.report.ticks import magnitudes, ticks
from streamgauge.report.windows import window_tables
from tests.report import build
from tests.report.test_page import read


def stored(folder: str = "runs/a b") -> build.Judged:
    run, verdict = build.wrong()
    return replace(run, folder=Path(folder)), verdict


def late() -> build.Judged:
    """Every fifth report came 1.5 s later than others; 1 s was allowed."""
    run, verdict = build.late()
    windows = [
        replace(one, late=place % 5 == 2, delay=(one.delay or 0) + 1500 * (place % 5 == 2))
        for place, one in enumerate(verdict.windows)
    ]
    return run, replace(verdict, windows=tuple(windows), delay_bound=1000.0, late=4)


def test_a_line_says_content_rows_and_command() -> None:
    (table,) = window_tables(series_of([stored()]))
    lines = {line.heading: line for line in table.lines}
    wrong = lines["window 3"]
    assert re.fullmatch(r"1,7\d\d triples in the window: \d+ rows expected, \d+ received, \d+ in both\.",
                        wrong.sentences[0])  # fmt: skip
    assert shlex.split(wrong.command) == ["streamgauge", "explain", "runs/a b", "--window", "3"]
    assert "rows expected and received." in lines["window 0"].sentences[0]
    assert lines["window 15"].sentences[0].endswith("No answer was received for it.")
    assert lines["window 20"].sentences == ("No report was due here; 3 rows came.",)
    assert table.filtered


def test_a_late_report_says_by_how_much_and_what_was_allowed() -> None:
    (table,) = window_tables(series_of([late()]))
    (told,) = [line.sentences[1] for line in table.lines if line.heading == "window 2"]
    assert re.fullmatch(r"It came 2\.4\d? s after it was due, later than the 1 s allowed\.", told)


@pytest.mark.slow
def test_plots_lead_to_rows_and_late_reports_stand_out() -> None:
    page = report.page([stored(), late()], "Hot stations")
    outline = read(page)
    links = {attrs["href"][1:] for tag, attrs in outline.tags if tag == "a" and attrs["href"].startswith("#w")}
    plotted = re.findall(r'<a href="#(w[\d-]+)" aria-label="[^"]*, (wrong|missed|late)[:"]', page)
    assert {state for _, state in plotted} == {"wrong", "missed", "late"}
    assert links <= set(outline.ids)
    assert page.count('stroke-width="1.8"') == 2  # the rings of the delay plot, wide and narrow
    assert "allowed: 1 s" in page
    assert page.count('type="checkbox"') == 2
    assert 'class="late"' in page


def test_without_a_folder_there_is_no_command() -> None:
    (table,) = window_tables(series_of([build.wrong()]))
    assert {line.command for line in table.lines} == {""}


@pytest.mark.parametrize(
    ("unit", "low", "high", "labels", "shown"),
    [
        ("count", 0, 1, "0 1", ""),
        ("count", 0, 7, "0 5", ""),
        ("", 0, 1, "0 0.5 1", ""),
        ("ms", 0, 900, "0 500", "ms"),
        ("ms", 0, 9000, "0 5", "s"),
        ("ms", 0, 600_000, "0 5 10", "min"),
        ("s", 0, 100, "0 50 100", "s"),
        ("s", 0, 7200, "0 60 120", "min"),
        ("s", 0, 86400, "0 12 24", "h"),
        ("MiB", 0, 8192, "0 5", "GiB"),
        ("s", 1_763_900_000, 1_763_900_060, "12:13:30 12:14:00 12:14:20", "UTC of 2025-11-23"),
    ],
)
def test_ticks_fit_the_unit(unit, low, high, labels, shown) -> None:
    result = ticks(unit, low, high, 3)
    if unit == "s" and low:
        assert [label for _, label in result.places] == ["12:13:30", "12:14:00"]
    else:
        assert set(labels.split()) <= {label for _, label in result.places}
        assert len(result.places) <= 5
    assert result.unit == shown
    assert all(low <= place <= high for place, _ in result.places)


@pytest.mark.parametrize(
    ("unit", "low", "high", "labels"),
    [
        ("", 0.05, 0.1, ["0.05", "0.06", "0.07", "0.08", "0.09", "0.1"]),
        ("ms", 0.012, 104, ["10 µs", "100 µs", "1 ms", "10 ms", "100 ms", "1 s"]),
        ("", 40, 80, ["40", "50", "60", "70", "80"]),
        ("", 1, 1e9, ["1", "100", "10,000", "1,000,000", "100,000,000"]),
        ("", 7, 7, ["1", "2", "5", "10"]),
    ],
)
def test_logarithmic_ticks_enclose_the_values(unit, low, high, labels) -> None:
    result = magnitudes(unit, low, high, 6)
    assert [label for _, label in result.places] == labels
    assert result.ends[0] <= low * 1.0001
    assert result.ends[1] >= high * 0.9999
