"""The timeline's speed, by CPU: 10,000 elements drawn, zoomed and panned; edits of 2,000 elements in view."""

import pytest
from benchmarks.timeline import edited, first_drawing, opened_bench, turned

from tests.contention import CONTENDED

pytestmark = [pytest.mark.browser, pytest.mark.prove]

FIRST_MS = 1_000
FRAME_MS = 1_000 / 30
EDITED_MS = 150


def test_ten_thousand_elements_are_drawn_zoomed_panned_and_edited_in_time() -> None:
    with opened_bench() as bench:
        assert first_drawing(bench, 0).cpu < CONTENDED * FIRST_MS
        for zoom in (0, 3):
            frame, _ = turned(bench, zoom, 40)
            assert frame < CONTENDED * FRAME_MS, zoom
        for name, cost in edited(bench, 5):
            assert cost.cpu < CONTENDED * EDITED_MS, (name, cost)
