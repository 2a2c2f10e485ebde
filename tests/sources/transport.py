"""A transport as another package would add it."""

from collections.abc import Iterator
from dataclasses import dataclass

from streamgauge.formats.lines import Advance
from streamgauge.formats.streams import Reading
from streamgauge.sources.contract import Address, read_options

SCHEMES = ("tick",)


@dataclass(frozen=True, slots=True)
class Options:
    count: int = 1


@dataclass
class Ticks:
    count: int
    refused: int = 0
    reasons: tuple[str, ...] = ()

    def items(self) -> Iterator[Advance]:
        return map(Advance, range(self.count))

    def close(self) -> None:
        self.count = 0


def open_source(address: Address, reading: Reading | None, form: str | None) -> Ticks:
    return Ticks(read_options(Options, address).count)
