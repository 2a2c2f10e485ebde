"""Elements in the order of their times, also of files larger than memory: sorted runs in temporary files, merged."""

from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from itertools import chain, islice
from operator import itemgetter
from tempfile import TemporaryFile
from typing import IO, Final

import msgspec

from streamgauge.formats.streams.format import Item, Reading
from streamgauge.model.terms import Triple

RUN: Final = 20_000
"""Elements that are sorted in memory: readings take about 35 MB then."""

BLOCK: Final = 100
"""Elements of each run that are in memory while runs are merged."""

_time = itemgetter(1)
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[tuple[str, int, tuple[Triple, ...]]]).decode


def in_order(items: Iterable[Item], place: str, reading: Reading) -> Iterator[Item]:
    """Elements sorted by time, with a note, unless a lateness is declared: then in the order of the file.

    All are read before the first one is yielded, so that an error comes before it.
    """
    if reading.lateness is not None:
        yield from items
        return
    source, runs, latest, sorted_ = iter(items), list[Iterable[Item]](), None, True
    while run := list(islice(source, RUN)):
        times = list(map(_time, run))
        run.sort(key=_time)
        sorted_ = sorted_ and times == list(map(_time, run)) and (latest is None or latest <= times[0])
        # The last time read, which is the run's greatest as long as everything is in order; afterwards it is not
        # needed.
        latest = times[-1]
        runs.append(run if len(run) < RUN else _stored(run))
    if not sorted_:
        reading.note(f"{place}: its elements were sorted by time (declare a lateness to keep the order of the file)")
    yield from chain(*runs) if sorted_ else merge(*runs, key=_time)


def _stored(run: Sequence[Item]) -> Iterator[Item]:
    """The elements of a run, which are in a file until they are read."""
    file = TemporaryFile()  # noqa: SIM115  (closed behind its last element)
    sizes: list[int] = []
    for begin in range(0, len(run), BLOCK):
        data = _encode([(str(place), time, triples) for place, time, triples in run[begin : begin + BLOCK]])
        sizes.append(file.write(data))
    # The blocks are read as they were written, one after another.
    file.seek(0)
    return _blocks(file, sizes)


def _blocks(file: IO[bytes], sizes: Sequence[int]) -> Iterator[Item]:
    with file:
        for size in sizes:
            yield from _decode(file.read(size))
