"""Methods of annotating facts with time, a file each, found by listing (Taelman et al., ESWC 2016, section 4)."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Protocol, TypeAlias, cast

from streamgauge.model.algebra import Node, TriplePattern, Var
from streamgauge.model.fact import Fact
from streamgauge.model.mistake import MistakeError
from streamgauge.model.phrases import offered, spelled
from streamgauge.model.terms import Term, Triple
from streamgauge.servers.fragments import ExpiringQuad, Quad, QuadPattern
from streamgauge.servers.fragments.labels import Style

Namer: TypeAlias = Callable[[Sequence[Fact]], str]
"""Gives the name (text for an IRI's end) of what facts with one label share; one that nothing else has."""


class PathError(ValueError):
    """A property path where a triple pattern was to have an annotated form."""


class UnknownMethodError(MistakeError, ValueError):
    """A method that is not here; the sentence lists those that are."""


@dataclass(frozen=True, slots=True)
class ComputedVariable:
    """A variable that is computed, not fetched: ``term`` of the triple that a triple pattern was matched by.

    It is the address of the triple's own fragment (implicit graphs) or its triple term (reifiers).
    """

    variable: Var
    pattern: TriplePattern
    term: Callable[[Triple], Term]


@dataclass(frozen=True, slots=True)
class AnnotatedForm:
    """The annotated form of a triple pattern: quads that are there with a fact, and the variables of its label.

    ``own`` are quads of the fact alone, ``label`` those of its label, which all facts of a group share: the ones with a
    quad that matches ``member`` (``None``: it has its own). ``also`` are quads of its own that tell nothing new.
    The label's variables are those of the time literals, ``None`` where the label has no such time; their values are
    read by ``labels.read_bounds``. ``links`` are variables of ``patterns`` that are computed, not fetched. Names of
    variables begin with ``_``.
    """

    own: tuple[QuadPattern, ...]
    label: tuple[QuadPattern, ...]
    initial: Var | None
    final: Var | None
    links: tuple[ComputedVariable, ...] = ()
    also: tuple[QuadPattern, ...] = ()
    member: QuadPattern | None = None

    @property
    def patterns(self) -> tuple[QuadPattern, ...]:
        """The patterns to fetch: those of the fact, then those of its label."""
        return self.own + self.label


class Method(Protocol):
    """The members of a module in this folder."""

    def annotate(self, facts: Sequence[Fact], style: Style, fresh: Namer) -> list[ExpiringQuad]:
        """Quads that say facts and their times.

        Static facts are triples of the default graph. Each quad ends when its fact does, one of several with the last.
        LabelError for a fact that the label can't say.
        """
        ...

    def facts(self, quads: Iterable[Quad], style: Style) -> list[Fact]:
        """The facts that quads say, those without a time included; the inverse of ``annotate``.

        LabelError for a label that is no time.
        """
        ...

    def form(self, pattern: TriplePattern, number: int, style: Style) -> AnnotatedForm:
        """The form to fetch for a triple pattern whose facts have times; ``number`` keeps its variables apart."""
        ...


def triple_nodes(pattern: TriplePattern) -> tuple[Node, Node, Node]:
    """The three places of a pattern; PathError for a property path, which has to be taken apart before."""
    if not isinstance(pattern.predicate, Var | str):
        raise PathError("a property path has no annotated form: only triple patterns have one")
    return pattern.subject, pattern.predicate, pattern.object


def methods() -> tuple[str, ...]:
    """The names of the methods, sorted."""
    return tuple(sorted(module.name for module in iter_modules(__path__)))


def named(name: str) -> str:
    """The method's name as it is written, from that name in any case; UnknownMethodError lists those there are."""
    if (spelling := spelled(name, methods())) is None:
        raise UnknownMethodError(f"there is no annotation method {name!r}: {offered(name, methods())}")
    return spelling


@cache
def method(name: str) -> Method:
    """The method of that name, in any case; UnknownMethodError lists those there are."""
    return cast(Method, import_module(f"{__name__}.{named(name)}"))
