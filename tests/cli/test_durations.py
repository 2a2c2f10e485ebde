"""Durations of the command line: with a unit, days too; without one they are ms, and that is said."""

import pytest

from streamgauge.workloads.parameters import duration
from tests.cli.test_bad_input import QUERY, here  # noqa: F401


@pytest.mark.parametrize(
    ("text", "ms"),
    [("1d", 86_400_000), ("0.5d", 43_200_000), ("2 h", 7_200_000), ("250ms", 250), ("1.5s", 1500), (7, 7), ("0", 0)],
)
def test_units(text, ms):
    assert duration(text) == ms


@pytest.mark.parametrize("text", ["soon", "1w", "-5s", "1.0001s", "", "10 minutes"])
def test_other_text_is_refused_with_the_units_there_are(text):
    with pytest.raises(ValueError, match="such as 500ms, 30s, 5m, 1h or 1d"):
        duration(text)


@pytest.fixture
def asked(here, command, monkeypatch):  # noqa: F811
    monkeypatch.chdir(here)
    return lambda *words: command(*words)


EXPECT = ("expect", "query.rq", "--stream", "table", "--semantics", "rspql", "--json")


@pytest.mark.parametrize(
    ("words", "note"),
    [
        ((*EXPECT, "--advance-to", "10000"), "--advance-to 10000 is read as 10000 ms: write 10000ms"),
        (("query", "query.rq", "--stream", "stream.parquet", "--lateness", "2"), "--lateness 2 is read as 2 ms"),
        (
            ("generate", "weather", "--duration", "3", "--interval", "1ms", "--out", "new"),
            "--duration 3 is read as 3 ms",
        ),
    ],
)
def test_a_number_without_a_unit_is_ms_and_that_is_said(asked, words, note):
    code, _, err = asked(*words)
    assert code == 0, err
    assert err.count(f"note: {note}") == 1


@pytest.mark.parametrize("more", [("--advance-to", "10s"), ("--advance-to", "0.0001d"), ("--t0", "0")])
def test_nothing_is_said_of_others(asked, more):
    code, _, err = asked(*EXPECT, *more)
    assert code == 0, err
    assert "is read as" not in err


@pytest.mark.parametrize(("text", "first"), [("2500", 7500), ("2500ms", 7500), ("2.5s", 7500), ("-2500", 2500)])
def test_the_first_window_starts_at_a_number_of_ms_or_a_duration(asked, text, first):
    code, out, err = asked("query", "query.rq", "--stream", "stream.parquet", "--t0", text, "--semantics", "rspql")
    assert code == 0, err
    assert f'"instant":{first}' in out.replace(" ", "")


@pytest.mark.parametrize(
    "words",
    [
        ("broker", "bridge", "--from", "x.nq", "--patience", "soon"),
        ("subscribe", "c", "--patience", "soon"),
        ("watch", "query.rq", "http://127.0.0.1:9/", "--period", "soon"),
        ("fragments", "serve", "--keep", "soon"),
        ("engine", "serve", "live", "--max-time", "soon"),
        ("capacity", "experiment.toml", "--max-delay", "soon"),
        ("query", "query.rq", "--stream", "table", "--advance-to", "soon"),
        ("query", "query.rq", "--stream", "table", "--t0", "soon"),
    ],
)
def test_no_duration_names_the_option(asked, words):
    code, _, err = asked(*words)
    assert code == 2
    assert words[-2] in err
    instant = words[-2] in ("--t0", "--advance-to")
    expected = (
        "expected ms, a duration such as 30s or -30s, or a date" if instant else "expected a duration in whole ms"
    )
    assert expected in " ".join(err.split())
