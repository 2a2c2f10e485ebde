"""Elements in the order of their times, also of files larger than memory: sorted runs in a temporary file, merged."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from heapq import merge
from itertools import chain
from operator import itemgetter
from tempfile import SpooledTemporaryFile, gettempdir
from typing import IO, Final

import msgspec

from streamgauge.formats.documents import FormatError
from streamgauge.formats.streams.format import Item, Reading
from streamgauge.model.mistake import obstacle
from streamgauge.model.terms import Triple

RUN: Final = 20_000
"""Elements that are sorted in memory: readings take about 35 MB then."""

BLOCK: Final = 100
"""Elements of each run that are in memory while runs are merged."""

TRIPLES: Final = 10
"""Triples of an element on average, if it is to count as one: of larger ones, fewer are in memory."""

_time = itemgetter(1)
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[tuple[str, int, tuple[Triple, ...]]]).decode


def in_order(items: Iterable[Item], place: str, reading: Reading) -> Iterator[Item]:
    """Elements sorted by time, with a note, unless a lateness is declared: then in the order of the file.

    All are read before the first one is yielded, so that an error comes before it. FormatError if the disk is full.
    """
    if reading.lateness is not None:
        yield from items
        return
    source, runs, latest, sorted_ = iter(items), list[Iterable[Item]](), None, True
    # One file for all runs: a process may have about a thousand open.
    with SpooledTemporaryFile(max_size=1) as file:
        while run := _portion(source, RUN):
            times = list(map(_time, run))
            run.sort(key=_time)
            sorted_ = sorted_ and times == list(map(_time, run)) and (latest is None or latest <= times[0])
            # The last time read, which is the run's greatest as long as everything is in order; afterwards it is not
            # needed.
            latest = times[-1]
            # The last run is short and stays in memory; a file below RUN elements never touches the disk.
            runs.append(_stored(run, file, place) if _is_full(run) else run)
        if not sorted_:
            reading.note(
                f"{place}: its elements were sorted by time (declare a lateness to keep the order of the file)"
            )
        # Runs in order need no merge: one after the other is the order of the file.
        yield from chain(*runs) if sorted_ else merge(*runs, key=_time)


def _is_full(run: Sequence[Item]) -> bool:
    return len(run) == RUN or sum(len(item[2]) for item in run) >= RUN * TRIPLES


def _portion(items: Iterator[Item], most: int) -> list[Item]:
    """The next elements, at most so many, or fewer if they are large."""
    portion, room = list[Item](), most * TRIPLES
    for item in items:
        portion.append(item)
        room -= len(item[2])
        if room <= 0 or len(portion) == most:
            break
    return portion


def _stored(run: Sequence[Item], file: IO[bytes], place: str) -> Iterator[Item]:
    """The elements of a run, appended to a file until they are read; FormatError if the disk is full."""
    blocks: list[tuple[int, int]] = []
    try:
        items = iter(run)
        while block := _portion(items, BLOCK):
            data = _encode([(str(where), time, triples) for where, time, triples in block])
            blocks.append((file.tell(), len(data)))
            file.write(data)
        file.flush()
    except OSError as error:
        # Closing writes what is left in the buffer, which would fail once more behind this error.
        with suppress(OSError):
            file.close()
        raise FormatError(
            f"{place}: its elements are too many to sort by time in memory, and {gettempdir()} cannot take them "
            f"({obstacle(error)}): set TMPDIR to another folder, or declare a lateness"
        ) from error
    return _blocks(file, blocks)


def _blocks(file: IO[bytes], blocks: Sequence[tuple[int, int]]) -> Iterator[Item]:
    """The elements of blocks, given by their offsets and sizes in bytes."""
    for offset, size in blocks:
        file.seek(offset)
        yield from _decode(file.read(size))
