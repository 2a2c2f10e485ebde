"""Finding workloads, their queries and the values of parameters."""

import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge import workloads
from streamgauge.query import fill, parse
from streamgauge.workloads.parameters import duration, instant


def test_the_weather_workload_is_found_by_its_folder():
    assert "weather" in workloads.names()
    weather = workloads.load("weather")
    assert weather.NAME == "weather"
    assert workloads.parameters(weather, {"interval": "2s"})["interval"] == 2000
    assert all(len(parameter) == 3 and parameter.help for parameter in weather.PARAMETERS.values())


def test_every_default_is_a_value_of_its_own_type():
    for name in workloads.names():
        for parameter in workloads.load(name).PARAMETERS.values():
            assert parameter.type(parameter.default) == parameter.default


def test_unknown_names_are_refused_with_the_names_there_are():
    with pytest.raises(workloads.UnknownNameError, match=r"unknown workload 'wether': there are .*weather"):
        workloads.load("wether")
    with pytest.raises(workloads.UnknownNameError, match="has no query 'q9': it has average"):
        workloads.query_text(workloads.load("weather"), "q9")


def test_an_entry_point_adds_a_workload(monkeypatch):
    rain = SimpleNamespace(NAME="rain", PARAMETERS={}, QUERIES=Path())
    monkeypatch.setitem(sys.modules, "elsewhere_rain", rain)
    points = [EntryPoint("rain", "elsewhere_rain", workloads.GROUP)]
    monkeypatch.setattr(workloads, "entry_points", lambda group: points if group == workloads.GROUP else [])
    assert "rain" in workloads.names()
    assert workloads.load("rain") is rain


VALUES = {"WSIZE": "5s", "WSLIDE": "1s", "TEMP": "50.0", "VARIATION_THRESHOLD": "0.0"}
COLUMNS = {
    "select": ("sensor", "obs", "value"),
    "average": ("avg",),
    "variation": ("sensor", "ob1", "value1", "ob2"),
    "count-by-sensor": ("sensor", "count"),
    "distinct-sensors": ("sensor",),
}


def test_the_weather_queries_are_these():
    more = {f"srbench-q{number}" for number in range(1, 18)}
    more |= {f"{over}-{number}" for over in ("streams", "windows") for number in (1, 2, 4)}
    assert set(workloads.queries(workloads.load("weather"))) == set(COLUMNS) | more


@pytest.mark.parametrize("name", COLUMNS)
def test_every_weather_query_is_valid_and_leaves_the_operator_to_the_semantics(name):
    text = workloads.query_text(workloads.load("weather"), name)
    query = parse(fill(text, {key: value for key, value in VALUES.items() if f"${{{key}}}" in text}), "rspql")
    assert (query.window.size, query.window.slide) == (5000, 1000)
    assert query.windows[0].stream == "http://ex.org/streams/test"
    assert query.form.variables == COLUMNS[name]
    assert query.r2s is None


@pytest.mark.parametrize(
    ("text", "ms"),
    [("500ms", 500), ("30s", 30_000), ("5m", 300_000), ("1h", 3_600_000), (7, 7), ("0.5s", 500), ("2.3s", 2300)],
)
def test_durations(text, ms):
    assert duration(text) == ms


@given(st.integers(0, 10**9), st.sampled_from([("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000)]))
def test_every_whole_duration_is_read_exactly(number, unit):
    assert duration(f"{number}{unit[0]}") == number * unit[1]


@pytest.mark.parametrize("text", ["", "s", "-5s", "1.5ms", "5 weeks", True, None, "1e3"])
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(ValueError, match="expected a duration"):
        duration(text)


INSTANTS = {
    "30s": 30_000,
    "-30s": -30_000,
    "+5": 5,
    "-20000d": -1_728_000_000_000,
    "2026-03-01T08:00:00Z": 1_772_352_000_000,
    "2026-03-01 09:00:00.250+01:00": 1_772_352_000_250,
    "2026-03-01T08:00": 1_772_352_000_000,
    "1969-12-31": -86_400_000,
}


@pytest.mark.parametrize("text", INSTANTS)
def test_instants_are_durations_and_dates(text):
    assert instant(text) == INSTANTS[text]


@pytest.mark.parametrize("text", ["soon", "2026-13-01", "--5", "2026-03-01T8", "", "1.5ms"])
def test_what_is_no_instant_is_refused(text):
    with pytest.raises(ValueError, match=r"2026-|no time"):
        instant(text)


@pytest.mark.parametrize("name", workloads.names())
def test_the_documentation_names_every_parameter(name: str) -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "workloads.md").read_text(encoding="utf-8")
    assert [item for item in workloads.load(name).PARAMETERS if f"`{item}`" not in text] == []
