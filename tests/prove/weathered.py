"""Streams of files for the proofs of the spark engine."""

import os
import random
from itertools import groupby
from pathlib import Path

from streamgauge.formats.stream import write
from streamgauge.model.element import StreamElement
from streamgauge.model.terms import XSD, Triple
from streamgauge.workloads.weather import STREAM

OWL = "http://knoesis.wright.edu/ssw/ont/sensor-observation.owl#"
STATIONS, SHARE, BOUND = 40, 0.1, 3000


def late_stream(folder: Path, seconds: int) -> Path:
    """40 stations, each seen every second; a tenth arrives up to 3 s late; a file for each second of arrivals."""
    draws = random.Random(11)
    offsets = [draws.randrange(1000) for _ in range(STATIONS)]
    seen = [(second * 1000 + offset, station) for second in range(seconds) for station, offset in enumerate(offsets)]
    delayed = [(time + draws.randrange(BOUND) * (draws.random() < SHARE), time, station) for time, station in seen]
    came = [
        (arrival, StreamElement(STREAM, time, number, _observation(station, time, draws.randrange(100))))
        for number, (arrival, time, station) in enumerate(sorted(delayed))
    ]
    for second, group in groupby(came, key=lambda entry: entry[0] // 1000):
        file = folder / f"{second:03}.parquet"
        write([element for _, element in group], file)
        os.utime(file, (1_000_000 + second, 1_000_000 + second))
    return folder


def _observation(station: int, time: int, value: int) -> tuple[Triple, ...]:
    place = f"<urn:observation:{station}:{time}>"
    measured = f"<urn:measure:{station}:{time}>"
    return (
        (place, f"<{OWL}procedure>", f"<urn:system:{station}>"),
        (place, f"<{OWL}result>", measured),
        (measured, f"<{OWL}floatValue>", f'"{value}"^^<{XSD}float>'),
    )
