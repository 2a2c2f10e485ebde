"""Tables in part files: read in the order of their numbers, however many digits these have."""

import pyarrow as pa

from streamgauge.formats import tables


def test_parts_come_in_the_order_of_their_numbers(tmp_path):
    schema = pa.schema([("n", pa.int64())])
    numbers = (2, 99_999, 100_000, 1_000_001)
    for number in reversed(numbers):
        tables.write_part(tmp_path, number, pa.table([[number]], schema=schema))
    assert tables.read(tmp_path, schema)["n"].to_pylist() == list(numbers)
