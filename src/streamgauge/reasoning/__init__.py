"""Reasoning: an ontology as rules (``ontology``), and their closure kept while facts come and go (``closure``)."""

from streamgauge.reasoning.closure import Closure
from streamgauge.reasoning.ontology import read_rules
from streamgauge.reasoning.rules import VIOLATES, OntologyError, Rule, Rules

__all__ = ["VIOLATES", "Closure", "OntologyError", "Rule", "Rules", "read_rules"]
