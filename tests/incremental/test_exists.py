"""EXISTS against SPARQL's own definition: each outer solution is substituted into the pattern, pyoxigraph asks it.

SPARQL 1.1, 18.6; pyoxigraph's EXISTS is not used, so MINUS inside is compared too. A subquery has values put for what
it projects.
"""

from collections import Counter
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.model import algebra as al
from streamgauge.model.terms import is_iri, is_literal
from streamgauge.query.printer import sparql
from streamgauge.query.traversal import expression_parts, parts
from tests.examples import examples
from tests.incremental.evaluation import Evaluator
from tests.incremental.test_evaluator import histories, play, store
from tests.sparql import draw, wide
from tests.sparql.suite import from_pyoxigraph

TRUE = '"true"^^<http://www.w3.org/2001/XMLSchema#boolean>'
NOTHING = al.Values((), ())


def put(pattern, values):
    """The pattern with values for variables."""
    inside = partial(put, values=values)
    match pattern:
        case al.BGP(patterns=patterns):
            return bgp([put_triple(triple, values) for triple in patterns])
        case al.Values(variables=variables, rows=rows):
            kept = [at for at, var in enumerate(variables) if var not in values]
            fits = [
                row
                for row in rows
                if all(row[at] in (None, values.get(var, row[at])) for at, var in enumerate(variables))
            ]
            return al.Values(tuple(variables[at] for at in kept), tuple(tuple(row[at] for at in kept) for row in fits))
        case al.Project(pattern=inner, variables=variables):
            seen = {var: value for var, value in values.items() if var in variables}
            left = tuple(var for var in variables if var not in seen)
            return al.Project(put(inner, seen), left or (al.Var("nothing"),))
        case al.Group(keys=keys):
            grouped = parts(pattern, inside, partial(put_expression, values=values))
            named = tuple((al.Var(f".key{var.name}") if var in values else var, key) for var, key in grouped.keys)
            return replace(grouped, keys=named if keys else ())
        case _:
            return parts(pattern, inside, partial(put_expression, values=values))


def put_triple(triple, values):
    nodes = (triple.subject, triple.predicate, triple.object)
    return al.TriplePattern(*(values.get(node, node) for node in nodes))


def bgp(patterns):
    wrong = any(
        (isinstance(triple.subject, str) and is_literal(triple.subject))
        or (isinstance(triple.predicate, str) and not is_iri(triple.predicate))
        for triple in patterns
    )
    return NOTHING if wrong else al.BGP(tuple(patterns))


def put_expression(tree, values):
    if isinstance(tree, al.Call) and tree.operator == "BOUND" and tree.arguments[0] in values:
        return TRUE
    if tree in values:
        return values[tree]
    return expression_parts(tree, partial(put, values=values), partial(put_expression, values=values))


def substituted(outer, inside, triples):
    """The outer solutions for which the pattern, with their values put into it, has one."""
    content = store(triples)
    variables = al.pattern_variables(outer)
    names = tuple(var.name for var in variables)
    rows = from_pyoxigraph(content.query(sparql(al.Select(al.Project(outer, variables), names)))).rows

    def holds(row):
        values = {var: cell for var, cell in zip(variables, row, strict=True) if cell is not None}
        return bool(content.query(sparql(al.Ask(put(inside, values)))))

    kept = {row: holds(row) for row in set(rows)}
    return Counter(row for row in rows if kept[row])


@st.composite
def questions(draws):
    """An outer pattern, and a pattern for EXISTS under a filter over both."""
    outer = draws(draw._group(frozenset({"OPTIONAL"}), "x", 1))
    operators = draw.OPERATORS - {draws(st.sampled_from(("MINUS", "EXISTS")))}
    inside = draws(draw._group(operators, "y", 2))
    if draws(st.booleans()):
        sides = (
            draws(st.sampled_from(al.pattern_variables(outer))),
            draws(st.sampled_from(al.pattern_variables(inside))),
        )
        inside = al.Filter(al.Call(draws(st.sampled_from(("=", "!=", "<"))), sides), inside)
    return outer, inside


@pytest.mark.slow
@examples(15, prove=2000)
@given(questions(), histories(steps=4))
def test_exists_is_substitution(question, history):
    outer, inside = question
    variables = al.pattern_variables(outer)
    names = tuple(var.name for var in variables)
    evaluator = Evaluator(al.Select(al.Project(al.Filter(al.Exists(inside), outer), variables), names))
    for there, _ in play(evaluator, history):
        assert evaluator.solutions() == substituted(outer, inside, there), sparql(al.Ask(inside))


def test_the_reference_knows_what_pyoxigraph_does_not():
    x, v = al.Var("s"), al.Var("v")
    outer = al.BGP((al.TriplePattern(x, draw.VALUE, v),))
    inside = al.Minus(outer, al.BGP((al.TriplePattern(x, draw.LINKS[0], al.Var("o")),)))
    triples = {(draw.RESOURCES[0], draw.VALUE, draw.NUMBERS[0]), (draw.RESOURCES[0], draw.LINKS[0], draw.RESOURCES[1])}
    assert substituted(outer, inside, triples) == {(draw.RESOURCES[0], draw.NUMBERS[0]): 1}
    form = al.Select(al.Project(al.Filter(al.Exists(inside), outer), (x, v)), ("s", "v"))
    assert wide.pyoxigraph_differs(form)
    assert not list(store(triples).query(sparql(form)))
