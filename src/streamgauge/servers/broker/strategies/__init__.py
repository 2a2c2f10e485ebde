"""How notifications are found, a module each: ``start(rules)`` begins with no facts."""

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from streamgauge.model.mistake import MistakeError
from streamgauge.model.phrases import offered, spelled
from streamgauge.reasoning.rules import Rules
from streamgauge.servers.broker.contract import Strategy


class UnknownStrategyError(MistakeError, ValueError):
    """No strategy of that name; the sentence names those that there are."""


@cache
def strategies() -> tuple[str, ...]:
    """Their names, sorted."""
    return tuple(sorted(module.name for module in iter_modules(__path__)))


def begin(name: str, rules: Rules) -> Strategy:
    """A strategy by its name, with no facts; UnknownStrategyError."""
    if (spelling := spelled(name, strategies())) is None:
        raise UnknownStrategyError(f"there is no strategy {name}: {offered(name, strategies())}")
    strategy: Strategy = import_module(f"{__name__}.{spelling}").start(rules)
    return strategy
