"""Borders that are off: the shift that fits all windows, and those of each, with the bits that their choice takes."""

from types import SimpleNamespace

import pytest

from streamgauge.oracle.diagnosis.faults import borders_shifted
from streamgauge.oracle.diagnosis.faults.borders_shifted import Shift, proposals

LATE = "Every window starts and ends {} ms late."


@pytest.mark.parametrize(
    ("shifts", "same", "each"),
    [
        # Ranges of shifts of start and end, and the number of pairs of borders; the bits of the choice.
        ([((0, 3), (-1, 2), 16), ((0, 1), (0, 5), 64)], None, None),
        ([((1, 3), (1, 2), 16), ((0, 1), (0, 5), 64)], ("windows 1 ms late", 4), ("1 of 2", "1 to 1", "1 to 1", 6)),
        ([((1, 3), (2, 4), 16), ((2, 9), (2, 5), 64)], ("windows 2 ms late", 4), ("2 of 2", "1 to 2", "2 to 2", 12)),
        ([((-9, -3), (-8, -4), 4)], ("windows 4 ms early", 2), ("1 of 1", "-3 to -3", "-4 to -4", 3)),
        ([((1, 3), (-5, -4), 16)], None, ("1 of 1", "1 to 1", "-4 to -4", 5)),
        ([((1, 2), (1, 2), 4), ((3, 4), (3, 4), 8)], None, ("2 of 2", "1 to 3", "1 to 3", 7)),
        ([((1, 2), (1, 2), 4), ((2, 4), (2, 4), 8)], ("windows 2 ms late", 2.5), ("2 of 2", "1 to 2", "1 to 2", 7)),
        ([], None, None),
    ],
)
def test_a_shift_of_all_windows_and_of_each(shifts, same, each, monkeypatch):
    found = {1_000 * at: Shift(*shift) for at, shift in enumerate(shifts)}
    monkeypatch.setattr(borders_shifted, "_shifts", lambda _seen: found)
    faults = list(proposals(SimpleNamespace(case=SimpleNamespace(t0=7))))
    assert {fault.t0 for fault in faults} <= {7}
    told = [(fault.part.name, fault.choice) for fault in faults]
    expected = [] if same is None else [same]
    if each is not None:
        windows, starts, ends, bits = each
        expected.append(("borders of each window moved", bits))
        assert faults[-1].part.sentence == (
            f"The borders of {windows} windows are off, each by its own: starts by {starts} ms, ends by {ends} ms."
        )
    assert told == expected
    if same is not None and same[0].endswith("late"):
        assert faults[0].part.sentence == LATE.format(same[0].split()[1])
