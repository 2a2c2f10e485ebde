"""The search: the border is found to the declared precision, wherever it is, and no value is asked for twice."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.suites.experiments.load_search import Bracket, Harder, SearchRange, search


def asked(border, reach):
    """The search for a border, and the values that it asked for."""
    values = []

    def passes(value):
        values.append(value)
        return value <= border if reach.harder is Harder.GREATER else value >= border

    return search(passes, reach), values


@given(border=st.floats(0.02, 900), start=st.floats(0.02, 900), harder=st.sampled_from(Harder))
def test_the_border_is_bracketed(border, start, harder):
    reach = SearchRange(start, 0.01, 1000.0, harder, precision=0.02)
    result, values = asked(border, reach)
    low, high = sorted((result.passed, result.failed))
    assert low <= border <= high
    assert high / low <= 1.021
    assert len(values) == len(set(values)) <= 30


@given(border=st.integers(1, 5000), start=st.integers(1, 5000), harder=st.sampled_from(Harder))
def test_whole_values_are_found_exactly(border, start, harder):
    result, values = asked(border, SearchRange(start, 1, 10_000, harder, whole=True, precision=1e-9))
    assert result.passed == border
    assert all(value == int(value) for value in values)
    if result.failed is not None:
        assert abs(result.failed - border) == 1


def test_nothing_passes():
    assert asked(0.5, SearchRange(8, 1, 64))[0] == Bracket(None, 1)


def test_everything_passes():
    result, values = asked(1e9, SearchRange(8, 1, 100))
    assert result == Bracket(100, None)
    assert values == [8, 16, 32, 64, 100]


@pytest.mark.parametrize("wrong", [{"start": 0}, {"start": 200}, {"precision": 0}, {"least": 0}])
def test_what_cannot_be_searched_is_refused(wrong):
    with pytest.raises(ValueError, match="must be"):
        SearchRange(**{"start": 8, "least": 1, "most": 100, **wrong})
