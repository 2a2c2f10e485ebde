"""Methods of annotating facts with time, a file each, found by listing (Taelman et al., ESWC 2016, section 4)."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules
from typing import Protocol, cast

from streamgauge.model.algebra import TriplePattern, Var
from streamgauge.model.fact import Fact
from streamgauge.services.fragments.quads import Lasting, Quad, QuadPattern
from streamgauge.services.fragments.style import Style


class UnknownMethodError(ValueError):
    """A method that is not here; the sentence lists those that are."""


@dataclass(frozen=True, slots=True)
class Link:
    """An annotation's subject that follows from its triple: the address of the triple's own fragment."""

    variable: Var
    pattern: TriplePattern


@dataclass(frozen=True, slots=True)
class Form:
    """The annotated form of a triple pattern: quads that are there with a fact, and the variables of its label.

    The label's variables are those of the time literals, ``None`` where the label has no such time. ``links`` are
    variables of ``patterns`` that are computed, not fetched.
    """

    patterns: tuple[QuadPattern, ...]
    initial: Var | None
    final: Var | None
    links: tuple[Link, ...] = ()


class Method(Protocol):
    """What a module in this folder has."""

    def annotate(self, facts: Sequence[Fact], style: Style, fresh: Callable[[], str]) -> list[Lasting]:
        """Quads that say facts and their times; ``fresh`` gives a name (text for an IRI's end) that was never used.

        Static facts are triples of the default graph. Each quad ends when its fact does, one of several with the last.
        """
        ...

    def facts(self, quads: Iterable[Quad], style: Style) -> list[Fact]:
        """The facts that quads say, those without a time included; the inverse of ``annotate``."""
        ...

    def form(self, pattern: TriplePattern, number: int, style: Style) -> Form:
        """What to ask for instead of a triple pattern whose facts have times; ``number`` keeps its variables apart."""
        ...


def methods() -> tuple[str, ...]:
    """The names of the methods, sorted."""
    return tuple(sorted(each.name for each in iter_modules(__path__)))


def method(name: str) -> Method:
    """The method of that name; UnknownMethodError lists those there are."""
    if name not in methods():
        raise UnknownMethodError(f"there is no annotation method {name!r}: there are {', '.join(methods())}")
    return cast(Method, import_module(f"{__name__}.{name}"))
