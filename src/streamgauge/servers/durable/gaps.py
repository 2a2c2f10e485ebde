"""Gaps: intervals in which elements of a source may be missing, and the answers whose windows they overlap."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import msgspec

from streamgauge.model.answer import Answer

UNREAD: Final = "what came while nobody read cannot be read again"

KEPT: Final = 20
"""Maximum number of gaps kept per stream; older ones are dropped."""


@dataclass(frozen=True, slots=True)
class Gap:
    """An interval (ms) in which elements of a source may be missing; ``begin`` is ``None`` if none came before.

    ``after`` is the number of the last answer before the gap.
    """

    source: str
    begin: int | None
    end: int
    why: str
    after: int = 0

    def __str__(self) -> str:
        begin = "its beginning" if self.begin is None else f"{self.begin:,} ms"
        return f"{self.source}: elements from {begin} to {self.end:,} ms may be missing: {self.why}"

    def touches(self, answer: Answer) -> bool:
        """Whether an answer might have been different with the missing elements."""
        # An answer without scope and instant may rest on anything, so every gap touches it.
        first, last = answer.scope or (answer.instant, answer.instant)
        return (last is None or self.begin is None or last >= self.begin) and (first is None or first <= self.end)

    @property
    def borders(self) -> dict[str, int | None]:
        """The interval as it is written into answers."""
        return {"from": self.begin, "to": self.end}


class Gaps:
    """The last gaps of a stream, or of all sources of a watch; ``record`` is the stored form."""

    def __init__(self, record: Iterable[Any] = ()) -> None:
        self._gaps = [Gap(**gap) for gap in record]

    def __iter__(self) -> Iterator[Gap]:
        return iter(self._gaps)

    def note(self, gap: Gap) -> Sequence[Any]:
        """Add a gap; returns the record to store."""
        # Bounded: a source that drops its connection each minute would fill the record.
        self._gaps = [*self._gaps, gap][-KEPT:]
        return [asdict(gap) for gap in self._gaps]


def stated(gaps: Iterable[Gap], line: bytes, answer: Answer, number: int = 1) -> bytes:
    """An answer's line of JSON (without line end), with the gaps that touch it and were known before it."""
    touching = [gap for gap in gaps if gap.after < number and gap.touches(answer)]
    members = [{"source": gap.source, **gap.borders} for gap in touching]
    # Appended to the text, which is already stored and compared byte by byte elsewhere; decoding it could change its
    # numbers.
    return line[:-1] + b',"gaps":' + msgspec.json.encode(members) + b"}" if members else line
