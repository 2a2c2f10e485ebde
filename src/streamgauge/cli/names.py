"""Names as words of the command line: known ones in any case, completed by the shell, others answered with those like
them.
"""

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import typer

from streamgauge.model.phrases import meant, spelled

Known: TypeAlias = Callable[[], Iterable[str]]
"""The names there are, found when they are asked for."""


def chosen(name: str, known: Iterable[str], option: str | None = None) -> str:
    """The known name that is written so in any case; BadParameter (of that option) lists the names there are."""
    names = list(known)
    if (found := spelled(name, names)) is None:
        said = f"{name!r}: choose from {', '.join(names)}{meant(name, names)}"
        raise typer.BadParameter(said, param_hint=option)
    return found


def one_of(known: Known, *declared: str, help: str) -> Any:  # noqa: A002
    """An option that takes one of these names, in any case; others are refused when words are read."""

    def checked(value: str | None) -> str | None:
        return None if value is None else chosen(value, known())

    return typer.Option(*declared, callback=checked, autocompletion=completed(known), metavar="NAME", help=help)


def one_named(known: Known, *declared: str, help: str) -> Any:  # noqa: A002
    """An option that takes one of these names; others are refused where the name is used."""
    return typer.Option(*declared, autocompletion=completed(known), metavar="NAME", help=help)


def completed(known: Known) -> Callable[[str], list[str]]:
    """How a shell completes such a name."""

    def begun(incomplete: str) -> list[str]:
        return [name for name in known() if name.startswith(incomplete)]

    return begun


def semantics_names() -> Iterable[str]:
    """The profiles."""
    from streamgauge.semantics.profiles import PROFILES

    return PROFILES


def engine_names() -> Iterable[str]:
    """The engines."""
    from streamgauge.engines import names

    return names()


def workload_names() -> Iterable[str]:
    """The workloads."""
    from streamgauge.workloads import names

    return names()


def dialect_names() -> Iterable[str]:
    """The dialects."""
    from streamgauge.query import dialects

    return dialects()


def strategy_names() -> Iterable[str]:
    """The broker's strategies."""
    from streamgauge.servers.broker.strategies import strategies

    return strategies()


def method_names() -> Iterable[str]:
    """The methods of annotating facts with time."""
    from streamgauge.servers.fragments.annotations import methods

    return methods()


def rule_names() -> Iterable[str]:
    """The published rule sets."""
    from streamgauge.papers.rules import names

    return names()
