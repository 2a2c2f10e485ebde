"""What a write asks for, as data: each operation is applied to a draft, all of a request's to one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from streamgauge.model.fact import Fact
from streamgauge.query.updates import Change, TooManySolutionsError
from streamgauge.services.fragments.serving.dataset import TooManyError
from streamgauge.services.fragments.serving.locating import Wanted
from streamgauge.services.fragments.serving.writing import MOST, Draft


class Operation(Protocol):
    """One change."""

    def apply(self, draft: Draft) -> None:
        """Make it in a draft."""
        ...


@dataclass(frozen=True, slots=True)
class Add:
    """These hold, too."""

    facts: Sequence[Fact]

    def apply(self, draft: Draft) -> None:
        """Make it in a draft."""
        draft.add(self.facts)


@dataclass(frozen=True, slots=True)
class Remove:
    """Wanted triples never held."""

    wanted: Sequence[Wanted]

    def apply(self, draft: Draft) -> None:
        """Make it in a draft."""
        for each in self.wanted:
            draft.remove(each)


@dataclass(frozen=True, slots=True)
class Replace:
    """Of the wanted triples these hold from now on, and no others."""

    wanted: Wanted
    facts: Sequence[Fact]

    def apply(self, draft: Draft) -> None:
        """Make it in a draft."""
        draft.replace(self.wanted, self.facts)


@dataclass(frozen=True, slots=True)
class Expire:
    """Wanted triples hold no longer from ``at`` (ms) on."""

    wanted: Sequence[Wanted]
    at: int

    def apply(self, draft: Draft) -> None:
        """Make it in a draft."""
        for each in self.wanted:
            draft.expire(each, self.at)


@dataclass(frozen=True, slots=True)
class Modify:
    """SPARQL's DELETE and INSERT with WHERE over the triples that hold now (SPARQL 1.1 Update, 3.1.3)."""

    change: Change
    at: int
    initial: int | None
    final: int | None

    def apply(self, draft: Draft) -> None:
        """Make it in a draft; TooManyError when more solutions are looked at than a request may touch facts."""
        try:
            deleted, inserted = self.change.triples(lambda *pattern: draft.holding(pattern), MOST)
        except TooManySolutionsError as error:
            raise TooManyError(str(error)) from error
        for triple in deleted:
            draft.expire(triple, self.at)
        draft.add(Fact(triple, self.initial, self.final) for triple in inserted)
