"""Reasoning: an ontology as rules (``ontology``), and their closure, maintained incrementally (``closure``)."""

from typing import TYPE_CHECKING, Final

from streamgauge.model.lazily import names_of

if TYPE_CHECKING:
    from streamgauge.reasoning.closure import Closure
    from streamgauge.reasoning.ontology import read_rules
    from streamgauge.reasoning.rules import VIOLATES, OntologyError, Rule, Rules

__all__ = ["VIOLATES", "Closure", "OntologyError", "Rule", "Rules", "read_rules"]

_MODULES: Final = {
    "closure": ("Closure",),
    "ontology": ("read_rules",),
    "rules": ("OntologyError", "Rule", "Rules", "VIOLATES"),
}
"""The names that each module defines; it is loaded at the first use of one."""

__getattr__ = names_of(__name__, _MODULES)
