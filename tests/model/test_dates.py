"""Times in words: dates where a stream's time counts from 1970, before it too."""

import pytest

from streamgauge.model.phrases import date_text, is_dated

DAY = 86_400_000


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (1_763_900_000_250, "2025-11-23 12:13:20.250Z"),
        (-778_131_000_000, "1945-05-05 20:30:00Z"),
        (-62_135_596_800_000, "0001-01-01 00:00:00Z"),
        (253_402_300_799_999, "9999-12-31 23:59:59.999Z"),
    ],
)
def test_a_time_far_from_0_is_a_date(ms, text):
    assert is_dated(ms)
    assert date_text(ms) == text


@pytest.mark.parametrize("ms", [0, 5000, -DAY, 10**11 - 1, 253_402_300_800_000, -62_135_596_800_001])
def test_a_time_near_0_or_beyond_the_calendar_is_none(ms):
    assert not is_dated(ms)
    assert date_text(ms) is None


def test_a_time_near_0_is_a_date_where_that_is_asked_for():
    assert date_text(-DAY + 1, always=True) == "1969-12-31 00:00:00.001Z"
    assert date_text(10**18, always=True) is None
