"""Numbered Turtle or N-Triples files, one element each: ``data_07.ttl`` is at 7 x interval ms (CSRBench).

A message is one graph; its time is stated in it (see ``quads``) or that of its arrival.
"""

import re
from collections.abc import Iterator
from typing import Final

import pyoxigraph as ox

from streamgauge.formats.codings import ENDINGS
from streamgauge.formats.documents import Document, FormatError, suffix_of
from streamgauge.formats.instants import ends_in_date
from streamgauge.formats.streams.format import Format, Item, Reading, Refuse, Relabel, Whole
from streamgauge.formats.streams.format import number as number_elements
from streamgauge.formats.streams.observations import moment_property, timed_as, untimed
from streamgauge.formats.streams.options import STREAM, TIMES, honoured
from streamgauge.formats.streams.quads import decoder, stamp
from streamgauge.formats.syntaxes import MEDIA_TYPES, parse_open
from streamgauge.model.element import StreamElement

_SYNTAX: Final = {".ttl": ox.RdfFormat.TURTLE, ".turtle": ox.RdfFormat.TURTLE, ".nt": ox.RdfFormat.N_TRIPLES}
_LAST_DIGITS: Final = re.compile(r"(\d+)(?!.*\d)")


def read(whole: Whole, reading: Reading, _refuse: Refuse) -> Iterator[StreamElement]:
    """The files of a folder by their number (the last digits of the name); FormatError names file and line."""
    return number_elements(_items(whole, reading), reading)


def encode(element: StreamElement) -> bytes:
    """An element as N-Triples, with a triple that states its time."""
    return "".join([f"{s} {p} {o} .\n" for s, p, o in (stamp(element), *element.added)]).encode()


def _items(whole: Whole, reading: Reading) -> Iterator[Item]:
    numbered: dict[int, Document] = {}
    documents = whole.with_endings(tuple(_SYNTAX))
    for document in documents:
        key = _number(document, whole, reading)
        if key in numbered:
            raise FormatError(
                f"{document.place}: {numbered[key].name} has the number {key} too: one file per time "
                "(--time-property reads times that are stated in the files)"
            )
        numbered[key] = document
    # By number, not by name: data_10 comes after data_9.
    for key, document in sorted(numbered.items()):
        relabel = Relabel(f"f{key}")
        with document.open() as opened:
            syntax = _SYNTAX.get(document.ending, ox.RdfFormat.TURTLE)
            triples = tuple(map(relabel.triple, parse_open(opened, document.place, syntax, reading.base)))
        if triples:
            # A single file with times in it was probably meant otherwise: its element count is told, and how to read
            # the times.
            if len(documents) == 1 and (name := moment_property(triples)) is not None:
                reading.note(
                    f"{document.place} is one element, at {key * reading.interval:,} ms by the number in its name; "
                    f"--time-property {name} reads the times in it"
                )
            yield document.place, key * reading.interval, triples


def _number(document: Document, whole: Whole, reading: Reading) -> int:
    name = document.name.lower()
    coding = suffix_of(name)
    stem = (name.removesuffix(coding) if coding in ENDINGS else name).removesuffix(document.ending)
    digits = _LAST_DIGITS.search(stem)
    if digits is None:
        numbered = "its name has no number for its time, as in data_07.ttl"
        raise FormatError(f"{document.place}: {numbered}, and {untimed(whole, reading, ox.RdfFormat.TURTLE)}")
    if ends_in_date(stem[: digits.end()]):
        raise FormatError(
            f"{document.place}: its name ends in a date, not in a number as in data_07.ttl, which counts intervals of "
            f"{reading.interval} ms: state times in the files (--time-property), or number them"
        )
    return int(digits[1])


FORMATS = (
    Format(
        "turtle",
        "numbered Turtle or N-Triples files, a time each",
        tuple(_SYNTAX),
        read,
        decoder=decoder(ox.RdfFormat.TURTLE),
        encode=encode,
        timed=timed_as(ox.RdfFormat.TURTLE),
        honours={
            "read": honoured(STREAM, "interval", "base", "charset"),
            "timed": honoured(STREAM, TIMES, "parts", "base", "charset", "bad"),
            "decoder": honoured(STREAM, TIMES, "parts", "base", "charset", "bad", "time"),
        },
        media_types=(*MEDIA_TYPES[ox.RdfFormat.TURTLE], *MEDIA_TYPES[ox.RdfFormat.N_TRIPLES]),
    ),
)
