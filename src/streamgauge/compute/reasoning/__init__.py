"""Reasoning: an ontology as rules (``ontology``), and their closure kept while facts come and go (``closure``)."""

from streamgauge.compute.reasoning.closure import Closure
from streamgauge.compute.reasoning.expressions import OntologyError
from streamgauge.compute.reasoning.ontology import read_rules
from streamgauge.compute.reasoning.rules import Rule, Rules

__all__ = ["Closure", "OntologyError", "Rule", "Rules", "read_rules"]
