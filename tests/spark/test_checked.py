"""A damaged page of Parquet ends the job of Spark that reads it; whose seal it has is not Spark's matter."""

from contextlib import suppress
from random import Random
from string import ascii_letters

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamgauge.formats.tables import writer
from streamgauge.spark.failures import JOB_ERRORS
from streamgauge.spark.hadoop_tables import read_parquet, stream_parquet

pytestmark = pytest.mark.spark


def other_values(data, table):
    """The bytes of a Parquet file with one that differs, which is read as other values by who checks nothing."""
    for place in range(len(data) // 4, len(data)):
        other = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
        with suppress(pa.ArrowException, OSError):
            if pq.read_table(pa.BufferReader(other)) != table:
                return other
    raise AssertionError


@pytest.fixture
def damaged(tmp_path):
    """A folder with a file of which one byte of a value differs."""
    file, draw = tmp_path / "table" / "rows.parquet", Random(31)
    file.parent.mkdir()
    table = pa.table({"value": ["".join(draw.choices(ascii_letters, k=20)) for _ in range(50)]})
    with writer(file, table.schema) as parquet:
        parquet.write_table(table)
    file.write_bytes(other_values(file.read_bytes(), table))
    return file.parent


def test_spark_checks_the_pages_that_it_reads(spark, damaged):
    with pytest.raises(JOB_ERRORS):
        read_parquet(spark, damaged, schema="value string").collect()


def test_spark_checks_the_pages_of_a_stream(spark, damaged, tmp_path):
    frame = stream_parquet(spark, damaged, "value string", 1)
    query = frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "kept")).start()
    with pytest.raises(JOB_ERRORS):
        query.awaitTermination(60)
