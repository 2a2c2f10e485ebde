"""YABench's ``P_`` files: memory, CPU and threads of the engine's process over time.

The file's clock starts with the process, an unknown time before the feed; its aggregated files and those of some
experiments lack the line with the engine's name.
"""

from pathlib import Path

from streamgauge.harness.importing.foreign import ForeignError, read_text
from streamgauge.model.run import Sample

HEADER = "time,rss_mem,cpu_percent,mem_percent,threads"
MIB = 1 << 20


def read_samples(path: Path, started: int) -> tuple[str | None, tuple[Sample, ...]]:
    """The engine's name when the file has it, and its samples from ``started`` (ns) on; ForeignError names the line."""
    lines = list(enumerate(read_text(path).splitlines(), 1))
    name = None
    if lines and lines[0][1].strip() != HEADER:
        name = lines.pop(0)[1].strip() or None
    if not lines or lines[0][1].strip() != HEADER:
        number = lines[0][0] if lines else 1
        raise ForeignError(f"{path}, line {number}: the line {HEADER!r} is expected, after at most an engine's name")
    return name, tuple(_sample(path, number, line, started) for number, line in lines[1:] if line.strip())


def _sample(path: Path, number: int, line: str, started: int) -> Sample:
    try:
        time, rss, cpu, memory, threads = map(float, line.split(","))
        return Sample(started + round(time * 1e9), round(rss * MIB), memory, cpu, round(threads))
    except (ValueError, OverflowError) as error:
        raise ForeignError(f"{path}, line {number}: five numbers ({HEADER}) are expected: {line[:80]}") from error
