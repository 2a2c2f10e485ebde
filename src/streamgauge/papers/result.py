"""What a reproduction is: sections of tables and plots, and how many published values came out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from streamgauge.report.sections import Line, Section, Table

__all__ = ["Line", "Reproduction", "Section", "Table", "agreed"]


@dataclass(frozen=True)
class Reproduction:
    """A paper's figures beside ours; ``data`` is the same for programs, ``labels`` name the plots' series."""

    title: str
    source: str
    sections: tuple[Section, ...]
    data: Mapping[str, Any] = field(default_factory=dict)
    labels: tuple[str, ...] = ()

    @property
    def compared(self) -> tuple[int, int]:
        """How many published values came out, and how many were compared."""
        lines = [line for section in self.sections for table in section.tables for line in table.lines]
        return agreed(lines)

    @property
    def headline(self) -> str:
        """The outcome in a sentence."""
        same, of = self.compared
        if not of:
            return "Figures measured here, beside the published ones."
        if same == of:
            return f"All {of:,} published values that could be compared come out."
        return f"{same:,} of {of:,} published values that could be compared come out."


def agreed(lines: Sequence[Line]) -> tuple[int, int]:
    """How many lines agree, and how many were compared."""
    told = [line.agrees for line in lines if line.agrees is not None]
    return sum(told), len(told)
