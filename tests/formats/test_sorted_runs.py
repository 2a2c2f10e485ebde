"""Elements are sorted by time alike in memory and in files, of any number."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.formats.streams import sorted_runs
from streamgauge.formats.streams.format import Reading

NOTE = "f.csv: its elements were sorted by time (declare a lateness to keep the order of the file)"


@given(st.lists(st.integers(-3, 9), max_size=20), st.integers(1, 6), st.integers(1, 3), st.booleans())
def test_runs_in_files_are_sorted_as_in_memory(times, run, block, late):
    items = [(f"line {at}", time, (("<urn:s>", "<urn:p>", f'"{at} é"'),)) for at, time in enumerate(times)]
    notes: list[str] = []
    reading = replace(Reading(), note=notes.append, lateness=5 if late else None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorted_runs, "RUN", run)
        patch.setattr(sorted_runs, "BLOCK", block)
        results = list(sorted_runs.in_order(iter(items), "f.csv", reading))
    expected = items if late else sorted(items, key=lambda item: item[1])
    assert results == expected
    assert notes == ([NOTE] if expected != items else [])


def test_an_error_comes_before_the_first_element(monkeypatch):
    def items():
        yield "line 1", 1, ()
        yield "line 2", 2, ()
        raise ValueError("line 3")

    monkeypatch.setattr(sorted_runs, "RUN", 1)
    with pytest.raises(ValueError, match="line 3"):
        next(sorted_runs.in_order(items(), "f.csv", Reading()))
