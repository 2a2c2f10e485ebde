"""What a write asks for, as data: each operation is applied to a draft, all of a request's to one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from streamgauge.model.fact import Fact
from streamgauge.query.updates import Change, Looks, TooManySolutionsError
from streamgauge.servers.fragments.serving.dataset import DataSet, TooManyError
from streamgauge.servers.fragments.serving.locating import Wanted
from streamgauge.servers.fragments.serving.writing import MOST, Draft

LOOKS: Final = 50_000
"""Facts that WHERE of an update looks at, and those that its templates make."""


class Operation(Protocol):
    """One change."""

    def apply(self, draft: Draft) -> None:
        """Make it in a draft."""
        ...

    def cost(self, dataset: DataSet) -> int:
        """About how many facts are looked at for it."""
        ...


@dataclass(frozen=True, slots=True)
class Add:
    """These hold, too."""

    facts: Sequence[Fact]

    def apply(self, draft: Draft) -> None:
        """Make it in a draft."""
        draft.add(self.facts)

    def cost(self, dataset: DataSet) -> int:  # noqa: ARG002
        """Those that hold."""
        return len(self.facts)


@dataclass(frozen=True, slots=True)
class Remove:
    """Wanted triples never held."""

    wanted: Sequence[Wanted]

    def apply(self, draft: Draft) -> None:
        """Make it in a draft."""
        for each in self.wanted:
            draft.remove(each)

    def cost(self, dataset: DataSet) -> int:
        """Those that match."""
        return _matching(dataset, self.wanted)


@dataclass(frozen=True, slots=True)
class Replace:
    """Of the wanted triples these hold from now on, and no others."""

    wanted: Wanted
    facts: Sequence[Fact]

    def apply(self, draft: Draft) -> None:
        """Make it in a draft."""
        draft.replace(self.wanted, self.facts)

    def cost(self, dataset: DataSet) -> int:
        """Those that match, and those that hold."""
        return _matching(dataset, (self.wanted,)) + len(self.facts)


@dataclass(frozen=True, slots=True)
class Expire:
    """Wanted triples hold no longer from ``at`` (ms) on."""

    wanted: Sequence[Wanted]
    at: int

    def apply(self, draft: Draft) -> None:
        """Make it in a draft."""
        for each in self.wanted:
            draft.expire(each, self.at)

    def cost(self, dataset: DataSet) -> int:
        """Those that match."""
        return _matching(dataset, self.wanted)


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
            deleted, inserted = self.change.triples(lambda *pattern: draft.asked(pattern), MOST, Looks(LOOKS))
        except TooManySolutionsError as error:
            raise TooManyError(str(error)) from error
        for triple in deleted:
            draft.expire(triple, self.at)
        draft.add(Fact(triple, self.initial, self.final) for triple in inserted)

    def cost(self, dataset: DataSet) -> int:
        """Those of its data, and as many solutions as WHERE may have."""
        size = len(self.change.delete) + len(self.change.insert)
        solutions: int = _matching(dataset, [(None, None, None)]) ** len(self.change.where)
        return size * solutions


def _matching(dataset: DataSet, wanted: Sequence[Wanted]) -> int:
    return sum(dataset.store.count((*each, None)) for each in wanted)
