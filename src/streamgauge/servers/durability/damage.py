"""What a check of a file finds, and what was saved of it: the same for journals and stores."""

from dataclasses import dataclass, field
from typing import Final

_LISTED: Final = 20


@dataclass(frozen=True, slots=True)
class Damage:
    """A place in a file, and what is wrong there."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


@dataclass(slots=True)
class Inspection:
    """What a check found: ``sound`` records by kind, and damages, of which the first few are listed."""

    sound: dict[str, int] = field(default_factory=dict)
    damages: list[Damage] = field(default_factory=list)
    more: int = 0

    def note(self, where: str, what: str) -> None:
        """One more damage."""
        if len(self.damages) < _LISTED:
            self.damages.append(Damage(where, what))
        else:
            self.more += 1

    def count(self, kind: str, many: int = 1) -> None:
        """So many more sound records of a kind."""
        self.sound[kind] = self.sound.get(kind, 0) + many

    @property
    def whole(self) -> bool:
        """Whether nothing is damaged."""
        return not self.damages

    @property
    def remains(self) -> str:
        """The sound records, in words."""
        found = ", ".join(f"{many:,} {kind}" for kind, many in self.sound.items() if many)
        return found or "nothing"


@dataclass(frozen=True, slots=True)
class Saved:
    """What was written to a new place, and what is lost, a sentence each."""

    kept: str
    losses: tuple[str, ...]
