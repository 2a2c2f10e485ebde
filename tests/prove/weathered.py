"""Streams of files for the proofs of the spark engine."""

import os
from pathlib import Path

import pyarrow.parquet as pq

from streamgauge.workloads.weather import generate


def late_stream(spark, folder: Path, seconds: int) -> Path:
    """40 stations, a tenth of the observations up to 3 s late, a file a second of arrivals."""
    asked = {"stations": 40, "duration": f"{seconds}s", "late_share": 0.1, "late_bound": "3s"}
    rows = generate(spark, 11, **asked).toArrow()
    rows = rows.sort_by([("sequence", "ascending"), ("position", "ascending")])
    size = len(rows) // seconds // 7 * 7
    for number in range(seconds):
        length = size if number < seconds - 1 else len(rows) - number * size
        file = folder / f"{number:03}.parquet"
        pq.write_table(rows.slice(number * size, length), file)
        os.utime(file, (1_000_000 + number, 1_000_000 + number))
    return folder
