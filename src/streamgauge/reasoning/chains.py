"""Transitive properties, derived edge by edge: what a chain of n pairs brings is found n times, not n * n times.

The rule p(x, y), p(y, z) -> p(x, z) derives the pair from one end of a chain of n to the other n - 1 times, once for
each place at which the chain can be parted, so that a chain costs n ** 3 / 6. Where the second pair has to be an edge,
a pair that something other than this rule brings, it is derived once for each edge that it can end with:

    p(x, y), base(y, z) -> chain(x, z)

``base`` is a hidden property: a pair of p that is explicit, that a step brings, or that another rule derives, is one of
it. ``chain`` brings pairs of p and all that p brings, but no edges of p (of another transitive property, it does).
Both rules have the same closure: p is the transitive closure of its edges (Bancilhon and Ramakrishnan, SIGMOD 1986).

A worked example: a p b. b p c. c p d. The quadratic rule derives a p d twice, from a p b, b p d and from a p c, c p d;
here it is derived once, from a p c and the edge c p d.
"""

from streamgauge.incremental.facts.facts import HIDDEN
from streamgauge.model.algebra import TriplePattern
from streamgauge.model.terms import RDF_TYPE, Term
from streamgauge.reasoning.rules import SAME, Rule


def base_of(name: Term) -> Term:
    """The hidden property of a transitive property's edges."""
    return f"{HIDDEN}edge {name}"


def chain_of(name: Term) -> Term:
    """The name of what the rule derives, of which no pairs are kept."""
    return f"{HIDDEN}chain {name}"


def transitive(rule: Rule) -> Term | None:
    """The property that a rule makes transitive; ``None`` for other rules, and for owl:sameAs."""
    name = rule.head.predicate
    if not isinstance(name, str) or name in (RDF_TYPE, SAME) or rule.tests or len(rule.body) != 2:
        return None
    start, end = rule.head.subject, rule.head.object
    for one, two in (rule.body, rule.body[::-1]):
        middle = one.object
        if (
            one == TriplePattern(start, name, middle)
            and two == TriplePattern(middle, name, end)
            and not isinstance(middle, str)
            and len({start, middle, end}) == 3
            and not (isinstance(start, str) or isinstance(end, str))
        ):
            return name
    return None


def edge_by_edge(rule: Rule, name: Term) -> tuple[TriplePattern, TriplePattern]:
    """The body of the rule that takes the place of one that is ``transitive``."""
    one, two = rule.body if rule.body[0].subject == rule.head.subject else rule.body[::-1]
    return one, TriplePattern(two.subject, base_of(name), two.object)
