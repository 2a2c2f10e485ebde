"""Numbered Turtle or N-Triples files, one element each: ``data_07.ttl`` holds at 7 x interval ms (CSRBench).

A transported message is one graph, its time stated in it (see ``dataset``) or that of its arrival.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pyoxigraph as ox

from streamgauge.formats.streams.format import Format, FormatError, Item, Reading, Relabel, ending, files, parse
from streamgauge.formats.streams.format import number as number_elements
from streamgauge.formats.streams.observations import moment_property, timed, untimed
from streamgauge.formats.streams.quads import decoder, stamp
from streamgauge.model.element import StreamElement

_SYNTAX = {".ttl": ox.RdfFormat.TURTLE, ".nt": ox.RdfFormat.N_TRIPLES}
_LAST_DIGITS = re.compile(r"(\d+)(?!.*\d)")


def read(path: Path, reading: Reading) -> Iterator[StreamElement]:
    """The files of a folder by their number (the last digits of the name); FormatError names file and line."""
    return number_elements(_items(path, reading), reading)


def encode(element: StreamElement) -> bytes:
    """An element as N-Triples, its time stated among them."""
    return "".join([f"{s} {p} {o} .\n" for s, p, o in (stamp(element), *element.added)]).encode()


def _items(path: Path, reading: Reading) -> Iterator[Item]:
    numbered: dict[int, Path] = {}
    for file in files(path, tuple(_SYNTAX)):
        key = _number(file, path, reading)
        if key in numbered:
            raise FormatError(f"{file}: has the number {key}, as {numbered[key].name} has: one file per time")
        numbered[key] = file
    for key, file in sorted(numbered.items()):
        relabel = Relabel(f"f{key}")
        triples = tuple(map(relabel.triple, parse(file, _SYNTAX[ending(file)])))
        if triples:
            if path == file and (name := moment_property(triples)) is not None:
                reading.note(
                    f"{file} is one element, at {key * reading.interval:,} ms by the number in its name; "
                    f"--time-property {name} reads the times in it"
                )
            yield str(file), key * reading.interval, triples


def _number(file: Path, path: Path, reading: Reading) -> int:
    stem = file.name.lower().removesuffix(".gz").removesuffix(ending(file))
    found = _LAST_DIGITS.search(stem)
    if found is None and path == file:
        raise FormatError(
            f"{file}: no number in the name, as in data_07.ttl, to say its time, and {untimed(file, reading)}"
        )
    if found is None:
        raise FormatError(f"{file}: no number in the name: files are numbered, as in data_07.ttl, to say their time")
    return int(found[1])


FORMATS = (
    Format(
        "turtle",
        "numbered Turtle or N-Triples files, a time each",
        (".ttl", ".nt"),
        read,
        decoder=decoder(ox.RdfFormat.TURTLE),
        encode=encode,
        timed=timed,
    ),
)
