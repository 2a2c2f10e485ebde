"""A durable watch over a day of stream time: state, memory and what is not durable yet stay as they are."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median

import psutil
import pytest

from streamgauge.formats.lines import encode_element
from streamgauge.model.element import StreamElement
from streamgauge.watching import watch
from streamgauge.watching.durable import LARGEST
from tests.prove.killed_queries import IN, TEXTS

LOG_BYTES = 6 * 2**20
"""The log of a state, as long as SQLite lets it become, and its files without content."""


def reading(second: int) -> StreamElement:
    value = f'"{second * 7919 % 100}"^^<http://www.w3.org/2001/XMLSchema#integer>'
    node = f"<urn:o{second}>"
    triples = ((node, "<urn:sensor>", f"<urn:s{second % 50}>"), (node, "<urn:value>", value))
    return StreamElement(IN, second * 1000, second, triples)


@dataclass(frozen=True)
class Sample:
    """What there is after an hour of stream time."""

    state: int
    kept: int
    undurable: int
    resident: int


def samples(folder: Path, texts: list[str], hours: int, per_hour: int) -> list[Sample]:
    """A sample for each hour, of so many elements."""
    seen, asked, process = list[Sample](), {f"q{at}": text for at, text in enumerate(texts)}, psutil.Process()

    def stream() -> Iterator[StreamElement]:
        for number in range(hours * per_hour):
            yield reading(number * 3600 // per_hour)

    with watch(asked, stream(), state=folder) as watched:
        for _ in watched:
            if watched.horizon // 3_600_000 > len(seen):
                state = watched._session
                size = sum(file.stat().st_size for file in folder.iterdir())
                seen.append(Sample(size, state.kept_items, watched.elements - state.next, process.memory_info().rss))
    return seen


def flat(seen: list[Sample], per_hour: int) -> None:
    """After three hours, of which the longest window holds one, nothing becomes more."""
    settled = seen[3:]
    assert max(sample.kept for sample in settled) <= 1.5 * per_hour + 2 * LARGEST, seen
    assert max(sample.undurable for sample in settled) <= LARGEST
    content = sum(len(encode_element(reading(second))) for second in range(0, 3600, 3600 // per_hour))
    assert max(sample.state for sample in settled) <= 3 * content + LOG_BYTES, seen
    assert max(after.state - before.state for before, after in pairwise(seen[6:])) <= 2**20, seen
    sizes = [sample.resident for sample in settled]
    half = len(sizes) // 2
    # One sample moves by what the allocator holds at that moment; a trend moves the median.
    assert median(sizes[half:]) - median(sizes[:half]) <= 4 * 2**20, seen


@pytest.mark.prove
def test_a_day_of_a_reading_a_second_is_flat(tmp_path, capsys):
    seen = samples(tmp_path, [TEXTS[0], TEXTS[6], TEXTS[12], TEXTS[16]], 24, 3600)
    with capsys.disabled():
        print(f"\nhour 4: {seen[3]}\nhour 23: {seen[-1]}")
    flat(seen, 3600)


def test_hours_of_a_reading_every_ten_seconds_are_flat(tmp_path):
    flat(samples(tmp_path, [TEXTS[6], TEXTS[16]], 8, 360), 360)
