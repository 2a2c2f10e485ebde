"""Triples as term ids keep their times in offsets from the first, however far apart they are."""

from bisect import bisect_left

from hypothesis import example, given
from hypothesis import strategies as st

from streamgauge.incremental.term_ids import TermIds

TIMES = st.integers(-(2**33), 2**33)


@given(st.lists(TIMES).map(sorted), TIMES, TIMES)
@example([0, 2**32 - 1], 2**32 - 1, 2**32)
@example([0, 2**32], 2**32, 0)
@example([5, 5, 9], 2**40, 5)
def test_pieces_are_split_at_times(times, first, second):
    ids = TermIds()
    whole = ids.joined([ids.of_triples([(time, [("<urn:s>", "<urn:p>", f'"{time}"')])]) for time in times])
    assert whole.times.tolist() == times
    at = bisect_left(times, first)
    before, after = whole.split(first)
    for piece, expected in ((before, times[:at]), (after, times[at:])):
        assert ([] if piece is None else piece.times.tolist()) == expected
        assert [int(end[1:-1]) for _, _, end in piece or ()] == expected
    for piece in (before, after):
        if piece:
            assert piece.span == (piece.times[0], piece.times[-1])
            assert piece.split(second)[0].times.tolist() == [time for time in piece.times.tolist() if time < second]
