"""The contract of a strategy: facts change, and the strategy gives the rows that enter and leave each answer."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple, Protocol, TypeAlias

import msgspec

from streamgauge.model.algebra import QueryForm
from streamgauge.model.terms import Row, Term, Triple

Turn: TypeAlias = Callable[[], AbstractContextManager[object]]
"""Begins a piece of work."""


@dataclass(frozen=True, slots=True)
class Publication:
    """A publish or a delete (or both at once, as an update), numbered from 1 in the order in which they take effect.

    Facts of named graphs are triples as ``model.named_facts`` writes them.
    """

    number: int
    added: tuple[Triple, ...] = ()
    removed: tuple[Triple, ...] = ()


class AnswerChange(NamedTuple):
    """Rows of an answer that came and went; ``causes`` are the publications of which one or more did it."""

    name: str
    causes: tuple[int, ...]
    added: tuple[Row, ...]
    removed: tuple[Row, ...] = ()

    @property
    def size(self) -> int:
        """About how many bytes the rows take."""
        return 64 + sum(map(len, filter(None, chain(*self.added, *self.removed))))


class Failures(NamedTuple):
    """Evaluations refused for their cost, each with the sentence that says so.

    ``refused`` are publications, by number, that had no effect; ``ended`` are queries that are not answered any more.
    """

    refused: Mapping[int, str]
    ended: Mapping[str, str]


class HeldSizes(NamedTuple):
    """About how much a strategy keeps: different terms of facts, bytes of the tables of facts and of answers."""

    terms: int
    facts: int
    answers: int


class AnswerEntry(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """The common part of a change's notifications in all channels of the answer; fields as in Notification.

    Many are kept, and none is in a cycle: the collector of garbage does not look at them.
    """

    causes: tuple[int, ...]
    added: tuple[Row, ...]
    removed: tuple[Row, ...]
    at: int
    size: int


class Notification(NamedTuple):
    """A notification: a set difference, numbered from 1 in its channel.

    Channel and number together tell whether it was received before; ``at`` is when it was made (ms), ``size`` about how
    many bytes it takes.
    """

    channel: str
    number: int
    causes: tuple[int, ...]
    added: tuple[Row, ...]
    removed: tuple[Row, ...]
    at: int
    size: int


class Strategy(Protocol):
    """How changes of answers are found. Facts are a set, answers are sets of rows. One thread at a time.

    Each query is asked once by a name, however many channels ask it.
    ``complete`` is true when nothing is put off: what a publication causes is found before ``publish`` ends.
    ``graphs`` is true when facts may be in named graphs, which ``facts`` then gives where a subject asks for them.
    """

    complete: bool
    graphs: bool

    def limit(self, effort: int, derived: int, change: int | None = None) -> None:
        """How much may be looked at for an answer, how much a publication may derive; only for what can be stopped.

        ``change`` is how much may be looked at for an answer because of one publication, ``effort`` without it.
        """
        ...

    def failures(self) -> Failures:
        """The part of the last publications that was refused."""
        ...

    def load(self, triples: Iterable[Triple]) -> None:
        """Many facts are there, before anything is asked."""
        ...

    def prepare(self, form: QueryForm, turn: Turn, alone: Turn) -> object:
        """Find the answer of a query that may be asked next, without the lock that all else here is done under.

        What needs it is done in short pieces within ``turn()``, what touches nothing of others within ``alone()``.
        ``create`` takes what is given, ``abandon`` lets go of it; ``None`` where ``create`` does all. Raises as
        ``create`` does.
        """
        ...

    def abandon(self, prepared: object) -> None:
        """Forget a prepared query."""
        ...

    def create(self, name: str, form: QueryForm, prepared: object = None) -> tuple[str, ...]:
        """A query is asked from now on, with the answer as it is, of which nobody is told; the variables of its rows.

        ValueError is a sentence that says what of the query is not done, TooMuchError that it costs too much.
        """
        ...

    def drop(self, name: str) -> None:
        """It is asked no more."""
        ...

    def held(self) -> HeldSizes:
        """How much is kept; from any thread."""
        ...

    def rows(self, name: str) -> Iterable[Row]:
        """The rows of an answer, as far as they have been found."""
        ...

    def size(self, name: str) -> int:
        """About how many rows an answer has, not fewer; known without looking at them."""
        ...

    def publish(self, publications: Sequence[Publication], now: float) -> Iterator[AnswerChange]:
        """Publications take effect in their order; what is found, as soon as it is. ``now`` is in seconds."""
        ...

    def evaluate(self, now: float) -> Iterator[AnswerChange]:
        """Do the work that was put off."""
        ...

    @property
    def explicit(self) -> int:
        """How many facts were published and not deleted."""
        ...

    def facts(
        self, subject: Term | None = None, predicate: Term | None = None, end: Term | None = None
    ) -> Iterator[Triple]:
        """The closure: facts, explicit and derived, with these terms where one is given."""
        ...
