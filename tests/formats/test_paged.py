"""Records that stay on disk are read like a tuple of them, from any place, and say when their file was replaced."""

import pickle
from collections.abc import Sequence
from unittest.mock import patch

import pyarrow as pa
import pytest

from streamgauge.formats import paged
from streamgauge.formats.manifest import TableError
from streamgauge.formats.paged import PagedRecords, RecordForm, gathered, read_records
from streamgauge.formats.tables import write_part

SCHEMA = pa.schema([pa.field("number", pa.int64(), nullable=False)])


def encoded(numbers: Sequence[int]) -> pa.Table:
    return pa.table([list(numbers)], schema=SCHEMA)


NUMBERS = RecordForm(SCHEMA, lambda table: table["number"].to_pylist())


@pytest.fixture(autouse=True)
def small_pages():
    with patch.object(paged, "PAGE", 3), patch.object(paged, "MAX_RESIDENT", 7):
        yield


def test_up_to_a_bound_records_are_a_tuple_and_beyond_it_they_are_equal_to_one():
    assert gathered(iter(range(7)), NUMBERS, encoded) == tuple(range(7))
    records = gathered(iter(range(20)), NUMBERS, encoded)
    assert isinstance(records, PagedRecords)
    assert (len(records), list(records), tuple(range(20))) == (20, [*range(20)], records)
    assert records != tuple(range(1, 21))
    assert hash(records) == hash(tuple(range(20)))
    assert pickle.loads(pickle.dumps(records)) == tuple(range(20))


def test_each_place_is_read_in_any_order(tmp_path):
    for part, numbers in enumerate((range(8), range(8, 9), range(9, 20))):
        write_part(tmp_path / "table", part, encoded(numbers))
    records = read_records(tmp_path / "table", NUMBERS)
    places = [0, 19, 4, 5, 8, 7, 9, 2, -1]
    assert [records[place] for place in places] == [place % 20 for place in places]
    assert (records[3:11], records[::-6], records[30:]) == ((*range(3, 11),), (19, 13, 7, 1), ())
    with pytest.raises(IndexError):
        records[20]


def test_the_file_of_gathered_records_goes_with_them():
    records = gathered(iter(range(20)), NUMBERS, encoded)
    assert isinstance(records, PagedRecords)
    (file,) = {file for file, _ in records._groups}
    assert file.exists()
    del records
    assert not file.exists()


def test_a_table_that_is_replaced_while_it_is_read_is_not_mixed(tmp_path):
    write_part(tmp_path, 0, encoded(range(20)))
    records = read_records(tmp_path, NUMBERS)
    write_part(tmp_path, 0, encoded(range(1, 21)))
    with pytest.raises(TableError, match="was replaced while it was read"):
        list(records)
