"""Strategies that find notifications, one module each; ``start(rules)`` returns one without facts."""

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from streamgauge.model.mistake import MistakeError
from streamgauge.model.phrases import offered, spelled
from streamgauge.reasoning.rules import Rules
from streamgauge.servers.broker.contract import Strategy


class UnknownStrategyError(MistakeError, ValueError):
    """An unknown strategy; the sentence lists the known ones."""


@cache
def strategies() -> tuple[str, ...]:
    """The sorted names of all strategies."""
    return tuple(sorted(module.name for module in iter_modules(__path__)))


def begin(name: str, rules: Rules) -> Strategy:
    """A strategy by its name, without facts; UnknownStrategyError."""
    if (spelling := spelled(name, strategies())) is None:
        raise UnknownStrategyError(f"there is no strategy {name}: {offered(name, strategies())}")
    strategy: Strategy = import_module(f"{__name__}.{spelling}").start(rules)
    return strategy
