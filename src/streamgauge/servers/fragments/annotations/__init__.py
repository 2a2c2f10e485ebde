"""Methods of annotating facts with time, one module each (Taelman et al., ESWC 2016, section 4)."""

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
"""Returns a unique name, the end of an IRI, for the node that facts with one label share."""


class PathError(ValueError):
    """A property path, which has no annotated form."""


class UnknownMethodError(MistakeError, ValueError):
    """An unknown annotation method; the sentence lists the known ones."""


@dataclass(frozen=True, slots=True)
class ComputedVariable:
    """A variable that is computed, not fetched, by ``term`` from the triple that matched ``pattern``.

    Its value is the address of the triple's own fragment (implicit graphs) or the triple term (reifiers).
    """

    variable: Var
    pattern: TriplePattern
    term: Callable[[Triple], Term]


@dataclass(frozen=True, slots=True)
class AnnotatedForm:
    """The annotated form of a triple pattern: the quads that represent a fact, and the variables of its label.

    ``own`` matches quads of the fact alone, ``label`` those of the label. All facts of a group share a label; their
    quads match ``member`` (``None`` if every fact has its own label). ``also`` matches further quads of the fact that
    carry no information. ``initial`` and ``final`` are the variables of the time literals, ``None`` if the label has
    no such time; ``labels.read_bounds`` reads their values. ``links`` are variables of ``patterns`` that are
    computed. All variables that the form introduces begin with ``_``, which users' queries cannot.
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
        """The patterns to fetch: first those of the fact, then those of its label."""
        return self.own + self.label


class Method(Protocol):
    """The functions that every module in this folder has."""

    def annotate(self, facts: Sequence[Fact], style: Style, fresh: Namer) -> list[ExpiringQuad]:
        """Quads that represent facts and their times.

        Static facts become triples of the default graph. A quad ends with its fact, a shared one with the last of its
        facts. LabelError for a fact that the label cannot express.
        """

    def facts(self, quads: Iterable[Quad], style: Style) -> list[Fact]:
        """The facts that quads represent, static ones included; the inverse of ``annotate``.

        LabelError for a label that is not a time.
        """

    def form(self, pattern: TriplePattern, number: int, style: Style) -> AnnotatedForm:
        """The form to fetch for a triple pattern whose facts have times; ``number`` makes its variables unique."""


def triple_nodes(pattern: TriplePattern) -> tuple[Node, Node, Node]:
    """The three nodes of a pattern; PathError for a property path, which callers expand before."""
    # A path is neither: its steps have to be annotated one by one.
    if not isinstance(pattern.predicate, Var | str):
        raise PathError("only triple patterns have an annotated form, not property paths")
    return pattern.subject, pattern.predicate, pattern.object


def methods() -> tuple[str, ...]:
    """The names of the methods, sorted."""
    return tuple(sorted(module.name for module in iter_modules(__path__)))


def named(name: str) -> str:
    """The spelling of a method's name given in any case; UnknownMethodError."""
    if (spelling := spelled(name, methods())) is None:
        raise UnknownMethodError(f"there is no annotation method {name!r}: {offered(name, methods())}")
    return spelling


@cache
def method(name: str) -> Method:
    """The method of a name, in any case; UnknownMethodError."""
    return cast(Method, import_module(f"{__name__}.{named(name)}"))
