"""Streams by name: ``IRI=SOURCE``, and the stream of elements whose source names none."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import merge
from pathlib import Path
from typing import TYPE_CHECKING

from streamgauge.formats.lines import Advance, Input
from streamgauge.formats.places import exists
from streamgauge.formats.streams import Format, Reading, one_by_one, possible_formats, stream_formats
from streamgauge.formats.streams.options import check_options, shown
from streamgauge.model.element import StreamElement
from streamgauge.sources import open_source
from streamgauge.sources.contract import Address, SourceError, parse_address, read_options
from streamgauge.sources.files import FileOptions

if TYPE_CHECKING:
    from streamgauge.formats.batches import Taken

_NAMED = re.compile(r"(?:<([^>]+)>|([A-Za-z][A-Za-z0-9+.-]*:[^?=]*))=(.+)", re.DOTALL)
"""``IRI=SOURCE``; an IRI that contains ``?`` or ``=`` needs angle brackets."""


@dataclass(frozen=True, slots=True)
class NamedSource:
    """A source: a path or URL, and the IRI of the stream to which all its elements belong, if declared."""

    address: str
    iri: str | None = None

    @property
    def table(self) -> Path | None:
        """The source's folder of stream tables, if it is one and declares no IRI."""
        folder = Path(self.address)
        there = self.iri is None and exists(folder) and folder.is_dir()
        return folder if there and any(folder.glob("*.parquet")) else None


def named_source(text: str | Path) -> NamedSource:
    """Parse ``IRI=SOURCE``, ``<IRI>=SOURCE`` or a source alone; an existing file of that name takes precedence."""
    match = None if isinstance(text, Path) or exists(text) else _NAMED.fullmatch(text)
    return NamedSource(str(text)) if match is None else NamedSource(match[3], match[1] or match[2])


def reading_for(source: NamedSource, streams: Sequence[str], reading: Reading) -> Reading:
    """The reading of a source for a query over ``streams``; elements without a stream belong to its only one."""
    # A declared IRI wins over the query: the source may be one of several streams that the query reads.
    if source.iri is not None:
        return replace(reading, stream=source.iri)
    if len(streams) == 1:
        return replace(reading, stream=streams[0])
    return replace(reading, among=tuple(streams))


def shared_readings(sources: Sequence[str | Path | None], reading: Reading) -> list[Reading]:
    """The reading of each source without the options that its format does not have; ``None`` is an iterable.

    SourceError for an option that no source has. The options of a single source are checked when it is read.
    """
    forms = [() if source is None else _forms(str(source), reading) for source in sources]
    # Its reader names the option and the place where it was given.
    if len(forms) == 1 and forms[0]:
        return [reading]
    options = [frozenset[str]().union(*(form.options for form in able)) for able in forms]
    for option in sorted(reading.chosen.difference(*options)):
        names = dict.fromkeys(" or ".join(form.name for form in able) or "an iterable" for able in forms)
        raise SourceError(f"{shown(option)} is not an option of {' and '.join(names)}")
    return [reading.without(reading.chosen - honoured) for honoured in options]


def _forms(source: str, reading: Reading) -> Sequence[Format]:
    """The format of a source, or the candidates from which its first bytes decide."""
    address = parse_address(source)
    name = address.options.get("form")
    if address.scheme == "file":
        return possible_formats(Path(address.path), name, reading)
    return possible_formats(Path(), name or "jsonl", reading)


def refuse_names(sources: Iterable[NamedSource], streams: Sequence[str]) -> None:
    """SourceError for a source whose stream the query does not read."""
    for source in sources:
        if source.iri is not None and streams and source.iri not in streams:
            read = " and ".join(f"<{name}>" for name in streams)
            raise SourceError(
                f"{source.address} is declared as <{source.iri}>, but the query reads {read}: "
                "name the same stream in both"
            )


class Course:
    """Tracks the time of streams, by elements and advances; ``None`` before the first.

    ``first`` is the time (ms) of the first item, where reports begin; ``last`` the latest time, where they end.
    """

    def __init__(self) -> None:
        self.first: int | None = None
        self.last: int | None = None

    def elements(self, items: "Iterable[Taken]") -> Iterator[StreamElement]:
        """Yield the elements and track the time of all items."""
        for item in one_by_one(items):
            self.first = item.time if self.first is None else self.first
            self.last = item.time if self.last is None else max(self.last, item.time)
            if isinstance(item, StreamElement):
                yield item

    def extend(self, first: int | None, latest: int | None) -> None:
        """Add items that were read elsewhere: the time (ms) of the first, and the latest; ``None`` for no item."""
        if first is not None and latest is not None:
            self.first = first if self.first is None else self.first
            self.last = latest if self.last is None else max(self.last, latest)


def recorded(
    sources: Sequence[NamedSource], streams: Sequence[str], reading: Reading, course: Course | None = None
) -> Iterator[StreamElement]:
    """The elements of finite sources, several merged by time; ``course`` tracks their time.

    SourceError for an endless source, one of another stream, or one without a stream if there are several.
    """
    refuse_names(sources, streams)
    for source in sources:
        address = parse_address(source.address)
        # Standard input is finite when it is redirected, which cannot be told from a pipe that stays open.
        if address.scheme != "-" and is_live(address):
            raise SourceError(f"{address.text}: a finite stream is needed: a file, or a topic with until=end")
    readings = shared_readings([source.address for source in sources], reading)
    pairs = zip(sources, readings, strict=True)
    merged = by_time([items(source, reading_for(source, streams, own)) for source, own in pairs])
    yield from (course or Course()).elements(merged)


def items(source: NamedSource, reading: Reading) -> "Iterator[Taken]":
    """The input of a source, assigned to its declared stream, if any. SourceError.

    Skipped bad elements (``bad=skip``) are noted at the end.
    """
    opened = open_source(source.address, reading)
    items_ = opened.items()
    yield from items_ if source.iri is None else of_stream(items_, source.iri)
    # Only now are the totals known; a note for each bad part would flood a terminal.
    for reason in opened.reasons:
        reading.note(f"skipped: {reason}")
    if opened.refused > len(opened.reasons):
        reading.note(f"skipped: {opened.refused:,} in total")


def of_stream(items_: "Iterable[Taken]", iri: str) -> "Iterator[Taken]":
    """The items with all elements assigned to one stream."""
    return (item if isinstance(item, Advance) else replace(item, stream=iri) for item in items_)


def is_live(address: Address) -> bool:
    """Whether a source may be endless: all but files without ``follow`` and topics with ``until=end``."""
    if address.scheme == "file":
        return read_options(FileOptions, address).follow
    return address.options.get("until") != "end"


def by_time(sources: "Sequence[Iterable[Taken]]") -> "Iterator[Taken]":
    """Sorted sources merged by application time, elements renumbered; an advance follows elements of its time."""
    if len(sources) == 1:
        yield from sources[0]
        return
    # Batches are split: elements of two sources may alternate within one.
    for sequence, item in enumerate(merge(*map(one_by_one, sources), key=merge_key)):
        yield numbered(item, sequence)


def numbered(item: "Taken", sequence: int) -> "Taken":
    """An element, or the first one of a batch, with another sequence number; an advance unchanged."""
    if isinstance(item, Advance):
        return item
    if not isinstance(item, StreamElement):
        return item.numbered(sequence)
    return StreamElement(item.stream, item.time, sequence, item.added, item.removed, item.until)


def merge_key(item: Input) -> tuple[int, bool]:
    """The sort key of items of several streams: by time, advances after elements."""
    return item.time, isinstance(item, Advance)


def stream_table(
    sources: Sequence[NamedSource], streams: Sequence[str], reading: Reading, folder: Path, *, always: bool = False
) -> tuple[Path, Course]:
    """Recorded sources as one stream table, with the course of their time.

    The table is written to ``folder``, unless the only source is a table already; ``always`` writes it anyway.
    """
    if not always and len(sources) == 1 and (table := sources[0].table) is not None:
        check_options(stream_formats()["parquet"], "read", reading, str(table), stream_formats().values())
        return table, Course()
    from streamgauge.formats.stream import write  # late: Arrow, which watching a stream does not need

    course = Course()
    write(recorded(sources, streams, reading, course), folder / "part-0.parquet")
    return folder, course
