"""Elements are sorted by time alike in memory and in files, of any number."""

from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.formats.documents import FormatError
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


def test_runs_take_no_more_open_files_than_one(monkeypatch):
    monkeypatch.setattr(sorted_runs, "RUN", 1)
    before = psutil.Process().num_fds()
    items = sorted_runs.in_order(((f"line {at}", -at, ()) for at in range(40)), "f.csv", replace(Reading(), note=print))
    assert next(items)[1] == -39
    assert psutil.Process().num_fds() <= before + 1


def test_a_full_disk_is_named(monkeypatch):
    monkeypatch.setattr(sorted_runs, "RUN", 1)
    sentence = r"^f.csv: .* cannot take them \(the disk is full.*\): set TMPDIR .*, or declare"
    with Path("/dev/full").open("wb") as full:
        monkeypatch.setattr(sorted_runs, "SpooledTemporaryFile", lambda **_: full)
        with pytest.raises(FormatError, match=sentence):
            next(sorted_runs.in_order(iter([("line 1", 1, ())]), "f.csv", Reading()))
