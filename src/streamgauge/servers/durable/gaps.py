"""Gaps: times of a source for which elements may be missing, and the answers whose windows they touch."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import msgspec

from streamgauge.model.answer import Answer

UNREAD: Final = "what came while nobody read cannot be read again"

KEPT: Final = 20
"""Gaps of a stream that are remembered, the last ones."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Elements of a source that may be missing: those between two times (ms); ``None`` where none came before.

    ``after`` is the number of the last answer that was made before.
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
        """Whether elements that may be missing would have counted for an answer."""
        first, last = answer.scope or (answer.instant, answer.instant)
        return (last is None or self.begin is None or last >= self.begin) and (first is None or first <= self.end)

    @property
    def borders(self) -> dict[str, int | None]:
        """Its times, as they are shown."""
        return {"from": self.begin, "to": self.end}


class Gaps:
    """The last gaps of a stream, or of all that a watch reads; ``record`` is what was kept of them."""

    def __init__(self, record: Iterable[Any] = ()) -> None:
        self._gaps = [Gap(**gap) for gap in record]

    def __iter__(self) -> Iterator[Gap]:
        return iter(self._gaps)

    def note(self, gap: Gap) -> Sequence[Any]:
        """One more; the record to keep."""
        self._gaps = [*self._gaps, gap][-KEPT:]
        return [asdict(gap) for gap in self._gaps]


def stated(gaps: Iterable[Gap], line: bytes, answer: Answer, number: int = 1) -> bytes:
    """The line of JSON of an answer, without its end, and as ``gaps`` those that touch it and were known before."""
    touching = [gap for gap in gaps if gap.after < number and gap.touches(answer)]
    members = [{"source": gap.source, **gap.borders} for gap in touching]
    return line[:-1] + b',"gaps":' + msgspec.json.encode(members) + b"}" if members else line
