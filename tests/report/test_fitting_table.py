"""Tables for the terminal: nothing is lost and no word is broken to letters, at any width."""

from io import StringIO
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.text import Text

from streamgauge.report.fitting_table import LEGIBLE, FittingTable, shares
from tests.examples import examples


def printed(table: FittingTable, width: int) -> str:
    console = Console(width=width, file=StringIO(), record=True)
    console.print(table)
    return console.export_text()


WORDS = st.text("abcdefghij", min_size=1, max_size=24)
CELLS = st.lists(WORDS, min_size=1, max_size=4).map(" ".join)


@given(st.data(), st.integers(1, 14), st.integers(40, 160), st.sampled_from([None, "default"]))
@examples(suite=60, prove=5_000)
def test_every_word_is_there_whole_at_any_width(data, columns, width, box):
    table = FittingTable(*(data.draw(CELLS) for _ in range(columns)), **({"box": None} if box is None else {}))
    rows = data.draw(st.lists(st.lists(CELLS, min_size=columns, max_size=columns), min_size=1, max_size=3))
    for row in rows:
        table.add_row(*map(Text, row))
    text = printed(table, width)
    assert max(map(len, text.splitlines())) <= width
    words = text.split()
    for word in " ".join(chain.from_iterable(rows)).split():
        if len(word) <= LEGIBLE:
            assert word in words
        else:
            assert any(word.startswith(part) and len(part) >= LEGIBLE for part in words)


def test_eleven_columns_on_a_narrow_terminal_are_records():
    table = FittingTable(*(f"heading-{number}" for number in range(11)), title="load")
    table.add_row(*(f"value {number}" for number in range(11)))
    lines = [line.rstrip() for line in printed(table, 80).splitlines()]
    assert lines[:4] == ["load", "80 characters are too few for 11 columns: a line each", "", "heading-0   value 0"]
    assert lines[-1] == "heading-10  value 10"
    assert "heading-0" in printed(table, 200).splitlines()[2]


@pytest.mark.parametrize(
    ("least", "most", "room", "widths"),
    [
        ([3, 5, 16], [4, 40, 80], 50, [4, 23, 23]), ([3], [3], 80, [3]), ([2, 2], [9, 9], 4, [2, 2]),
        ([1, 9], [5, 9], 12, [3, 9]),
    ],
)  # fmt: skip
def test_shares_fill_the_room_from_the_narrowest(least, most, room, widths):
    assert shares(least, most, room) == widths
