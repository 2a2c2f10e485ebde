"""Peak of resident memory while files of observations are read, of one size and of four times that size.

python -m benchmarks.reading_memory [--observations 50000] [--forms rdf jsonld ...]

A process of its own reads each file. Goal: the larger file takes at most a fifth more than the smaller one.
``jsonld, context last`` has its context behind the observations.
"""

import argparse
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Final

from benchmarks.measure import OneOf, options
from benchmarks.results import ResultTable
from benchmarks.speed import OBSERVATIONS

TIMES: Final = 4
GROWTH: Final = 1.2

_CONTEXT, _GRAPH = OBSERVATIONS["jsonld"][0].split(', "@graph": [')
FORMS: Final = {
    **{form: texts for form, texts in OBSERVATIONS.items() if form != "csv"},
    "jsonld, context last": (
        '{"@graph": [' + _GRAPH,
        OBSERVATIONS["jsonld"][1],
        '{"@id": "urn:end"}], ' + _CONTEXT[1:] + "}",
    ),
}
"""Files by name: the ending, what is before the observations, one of them, what is after them."""

READ: Final = """
import sys
from benchmarks.measure import own_peak
from streamgauge.formats.streams import Reading
from streamgauge.sources import open_source
reading = Reading(stream="urn:s", note=lambda _: None)
count = sum(1 for _ in open_source(sys.argv[1] + "?time_property=sosa:resultTime", reading).items())
print(count, own_peak())
"""


def written(form: str, count: int, folder: Path) -> Path:
    """A file of so many observations."""
    head, one, tail = FORMS[form]
    file = folder / f"s.{form.split(',')[0]}"
    with file.open("w") as out:
        out.write(head)
        for n in range(count):
            out.write(one.format(n=n, at=datetime.fromtimestamp(1_772_352_000 + n, UTC).strftime("%FT%TZ")))
        out.write(tail)
    return file


def peak(file: Path, count: int) -> float:
    """The peak (MiB) of a process that reads the file."""
    done = subprocess.run([sys.executable, "-c", READ, str(file)], check=True, capture_output=True, text=True)
    elements, peak = done.stdout.split()
    assert int(elements) == count
    return float(peak)


def measure(arguments: argparse.Namespace) -> bool:
    """Print a row for each form; whether all reach the goal."""
    reached = True
    columns = ("form", "observations", "MB", "peak, MiB", "growth", "goal", "outcome")
    with ResultTable("reading_memory", columns) as table, tempfile.TemporaryDirectory() as folder:
        for form in arguments.forms:
            peaks = []
            for count in (arguments.observations, TIMES * arguments.observations):
                file = written(form, count, Path(folder))
                peaks.append(peak(file, count))
                growth = [later / before for before, later in pairwise(peaks)]
                right = not growth or growth[0] <= GROWTH
                reached = reached and right
                goal = (f"{growth[0]:.2f}", f"{GROWTH}", "reached" if right else "not reached") if growth else ("",) * 3
                table.add(form, f"{count:,}", f"{file.stat().st_size / 1e6:.0f}", f"{peaks[-1]:.0f}", *goal)
    return reached


if __name__ == "__main__":
    sys.exit(0 if measure(options(__doc__, observations=50_000, forms=OneOf(FORMS))) else 1)
