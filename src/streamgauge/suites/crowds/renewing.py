"""Facts of a stream put into a data set when their time has come, in the two ways that publishers do it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import count, groupby

from streamgauge.model.element import StreamElement
from streamgauge.model.fact import Fact
from streamgauge.model.terms import Triple
from streamgauge.servers.fragments.annotations import method
from streamgauge.servers.fragments.quads import Quad
from streamgauge.servers.fragments.serving import writing
from streamgauge.servers.fragments.serving.dataset import DataSet
from streamgauge.servers.fragments.style import Label


class Renewal(StrEnum):
    """What becomes of an update's facts when the next comes."""

    KEPT = "kept"  # by the write interface: what stays as it was keeps its name and gets a later end
    PUBLISHED = "published"  # as the prototype: all anew under new names, after it the previous ones are removed
    PLAIN = "plain"  # without times, for clients that poll


@dataclass(frozen=True, slots=True)
class Update:
    """What holds from a time on, and until when it is said to hold; ms of the stream."""

    time: int
    until: int
    triples: tuple[Triple, ...]


def updates(elements: Iterable[StreamElement], slack: int) -> Iterator[Update]:
    """A stream's elements by time; what ends is said to hold ``slack`` ms longer, so that it is renewed before it ends.

    ValueError for an element without an end.
    """
    for time, group in groupby(elements, key=lambda element: element.time):
        together = list(group)
        if any(element.until is None for element in together):
            raise ValueError(f"an element at {time} ms has no end: facts of a data set that is renewed need one")
        until = max(element.until or 0 for element in together)
        triples = dict.fromkeys(triple for element in together for triple in element.added)
        yield Update(time, until + slack, tuple(triples))


@dataclass(slots=True)
class Renewing:
    """Applies updates to a data set; ``begins`` is the stream's time 0, ms since 1970."""

    dataset: DataSet
    renewal: Renewal
    begins: int
    _before: Sequence[Quad] = ()
    _names: Iterator[int] = field(default_factory=lambda: count(1))

    def apply(self, update: Update) -> None:
        """What an update says holds, and nothing else of what updates said."""
        initial, final = self.begins + update.time, self.begins + update.until
        facts = [Fact(triple, initial, final) for triple in update.triples]
        match self.renewal:
            case Renewal.KEPT:
                self._keep(facts)
            case Renewal.PUBLISHED:
                self._publish(facts)
            case Renewal.PLAIN:
                self._change([(*triple, "") for triple in update.triples])

    def _keep(self, facts: Sequence[Fact]) -> None:
        draft = writing.Draft(self.dataset)
        for predicate in sorted({fact.triple[1] for fact in facts}):
            draft.replace((None, predicate, None), [fact for fact in facts if fact.triple[1] == predicate])
        draft.commit()

    def _publish(self, facts: Sequence[Fact]) -> None:
        style = self.dataset.style
        quads = method(style.method).annotate(facts, style, lambda _shared: str(next(self._names)))
        come = {quad for quad, _ in quads}
        gone = () if style.label is Label.INTERVAL else [quad for quad in self._before if quad not in come]
        self.dataset.change(gone, quads)
        self._before = tuple(come)

    def _change(self, quads: Sequence[Quad]) -> None:
        come = set(quads)
        self.dataset.change([quad for quad in self._before if quad not in come], [(quad, None) for quad in quads])
        self._before = quads
