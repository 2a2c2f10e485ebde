"""Finding workloads, their queries and the values of parameters."""

import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge import workloads
from streamgauge.workloads.parameters import duration


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
    with pytest.raises(workloads.UnknownNameError, match=r"no workload 'wether': there is .*weather"):
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


def test_the_weather_queries_carry_their_parameters():
    weather = workloads.load("weather")
    found = workloads.queries(weather)
    assert {"select", "average", "variation", "count-by-sensor", "distinct-sensors"} <= set(found)
    for name in found:
        text = workloads.query_text(weather, name)
        assert "[RANGE ${WSIZE} STEP ${WSLIDE}]" in text
        assert "STREAM AS" not in text.upper().replace("NAMED WINDOW", "")


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
