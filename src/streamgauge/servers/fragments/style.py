"""How time is written beside facts: the label, the vocabulary, the method; data that server and client share."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from streamgauge.model.terms import Term


class Label(StrEnum):
    """What is said of a fact's time (Taelman et al., ESWC 2016, section 4)."""

    EXPIRATION = "expiration"  # until when it holds
    INTERVAL = "interval"  # from when and until when
    INSTANT = "instant"  # the one instant at which it held


class Border(StrEnum):
    """Whether the instant that a final time names belongs to the fact; facts themselves are half open, in ms."""

    EXCLUSIVE = "exclusive"
    INCLUSIVE = "inclusive"  # as the prototype reads it


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The IRIs (in angle brackets) of labels; ``interval`` is ``None`` where borders are on the subject itself."""

    name: str
    interval: Term | None
    initial: Term
    final: Term
    expiration: Term
    instant: Term
    singleton: Term
    datatype: str
    """The datatype IRI of times, without brackets; canonical, so that terms pass through stores unchanged."""

    names: str = "http://example.org/graphs#"
    """What IRIs of graphs, statements, reifiers, groups and interval nodes begin with; a fresh name follows."""


_TMP = "http://example.org/temporal#"
_XSD = "http://www.w3.org/2001/XMLSchema#"

PAPER: Final = Vocabulary(
    "paper",
    interval=f"<{_TMP}interval>",
    initial=f"<{_TMP}initial>",
    final=f"<{_TMP}final>",
    expiration=f"<{_TMP}expiration>",
    instant=f"<{_TMP}instant>",
    singleton="<http://www.w3.org/1999/02/22-rdf-syntax-ns#singletonPropertyOf>",
    datatype=f"{_XSD}dateTime",
)
"""As in the paper's listings; it gives no IRI for ``tmp:``, the prototype's is taken."""

PROTOTYPE: Final = Vocabulary(
    "prototype",
    interval=None,
    initial=f"<{_TMP}intervalInitial>",
    final=f"<{_TMP}intervalFinal>",
    expiration=f"<{_TMP}expiration>",
    instant=f"<{_TMP}instant>",
    singleton="<http://example.org/singletonproperties#singletonPropertyOf>",
    datatype=f"{_XSD}dateTime",
)
"""As QueryStreamer.js and its server wrote it (eswc2016), but for the datatype, which they did not expand."""

VOCABULARIES: Final = {each.name: each for each in (PAPER, PROTOTYPE)}


@dataclass(frozen=True, slots=True)
class Style:
    """How facts with time are written; ``grouped``: facts with equal labels share one where the method can."""

    method: str = "graphs"
    label: Label = Label.EXPIRATION
    vocabulary: Vocabulary = PAPER
    grouped: bool = True
    border: Border = Border.EXCLUSIVE
    template: str = "http://localhost:4000/data{?subject,predicate,object}"
    """Addresses of fragments (RFC 6570, one form-style expression): an implicit graph is named by its triple's."""
