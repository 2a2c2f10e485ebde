"""The elements of a stream as the lines that an engine reads: one by one, or a whole table's by columns."""

import re
from collections.abc import Iterable, Iterator
from json.encoder import encode_basestring_ascii
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.formats.lines import encode_element
from streamgauge.formats.stream import elements_of, whole
from streamgauge.model.element import StreamElement

_PRINTED = 0x20
"""Characters below this one have to be escaped (RFC 8259, 7)."""

_ROWS = 8192
_PLAIN = re.compile("[ -~]*")


class Written(NamedTuple):
    """One element: its sequence number, application time (ms), triples added, and its line."""

    sequence: int
    time: int
    size: int
    line: bytes


def written(stream: Iterable[StreamElement | Written]) -> Iterator[Written]:
    """The lines of elements; what is written already stays as it is."""
    for each in stream:
        yield each if isinstance(each, Written) else _line(each)


def read_written(source: pa.Table | str | Path) -> Iterator[Written]:
    """The lines of a stream table, as ``written(elements(source))``; StreamError as ``elements`` has it."""
    last = -1
    for where, batch in whole(source):
        starts = _starts(batch, last)
        if starts is None:
            yield from map(_line, elements_of(batch, last, where))
        else:
            yield from _by_columns(batch, starts)
        last = batch.column("sequence")[-1].as_py()


def _line(element: StreamElement) -> Written:
    return Written(element.sequence, element.time, len(element.added), encode_element(element))


def _starts(batch: pa.RecordBatch, last: int) -> Any:
    """Where the elements begin (an array, with the end); ``None`` for a batch that has to be looked at one by one."""
    sequence, time, position = (batch.column(name).to_numpy() for name in ("sequence", "time", "position"))
    steps = np.diff(sequence)
    starts = np.concatenate(([0], np.flatnonzero(steps) + 1, [len(sequence)]))
    counted = np.arange(len(sequence)) - np.repeat(starts[:-1], np.diff(starts))
    sound = sequence[0] > last and (steps >= 0).all() and (position == counted).all()
    sound = sound and not (np.diff(time)[steps == 0]).any() and batch.column("until").null_count == len(batch)
    streams = pc.unique(batch.column("stream"))
    return starts if sound and len(streams) == 1 and _PLAIN.fullmatch(streams[0].as_py()) else None


def _by_columns(batch: pa.RecordBatch, starts: Any) -> Iterator[Written]:
    """The lines of elements of one stream, none of which ends."""
    texts = _texts(batch, starts)
    first = starts[:-1]
    sequences = batch.column("sequence").to_numpy()[first].tolist()
    times = batch.column("time").to_numpy()[first].tolist()
    stream = encode_basestring_ascii(batch.column("stream")[0].as_py()).encode()
    for sequence, time, size, text in zip(sequences, times, np.diff(starts).tolist(), texts, strict=True):
        line = b'{"t":%d,"n":%d,"stream":%b,"add":"%b"}\n' % (time, sequence, stream, text)
        yield Written(sequence, time, size, line)


def _texts(batch: pa.RecordBatch, starts: Any) -> Iterator[bytes]:
    """The N-Triples of each element as the inside of a JSON string, some elements at a time."""
    terms = [_escaped(batch.column(name)) for name in ("subject", "predicate", "object")]
    lines = pc.binary_join_element_wise(*terms, ".\\n", " ")
    step = max(1, _ROWS * (len(starts) - 1) // max(1, len(batch)))
    for at in range(0, len(starts) - 1, step):
        borders = starts[at : at + step + 1]
        rows = lines.slice(int(borders[0]), int(borders[-1] - borders[0]))
        listed = pa.ListArray.from_arrays(pa.array(borders - borders[0], pa.int32()), rows)
        yield from pc.binary_join(listed, "").cast(pa.binary()).to_pylist()


def _escaped(terms: pa.Array) -> pa.Array:
    """Terms as the inside of JSON strings."""
    text = np.frombuffer(terms.buffers()[2], np.uint8)
    if (text < _PRINTED).any():
        return pa.array([encode_basestring_ascii(term)[1:-1] for term in terms.to_pylist()])
    for mark in ("\\", '"'):
        if (text == ord(mark)).any():
            terms = pc.replace_substring(terms, mark, "\\" + mark)
    return terms
