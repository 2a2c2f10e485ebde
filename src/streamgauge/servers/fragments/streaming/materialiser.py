"""The materialiser: a static query with the values of a dynamic row filled in (Taelman et al., ESWC 2016, 6.2)."""

from collections.abc import Mapping
from dataclasses import replace

from streamgauge.model import algebra as al
from streamgauge.model.terms import Term, is_blank, is_iri, is_literal
from streamgauge.servers.fragments.streaming.demand import OUTER, Wanted, demand


def materialised(static: al.Pattern, row: Mapping[al.Var, Term]) -> tuple[Wanted, ...]:
    """What a static part needs beside a row: its patterns, values filled in where nothing that joins is left out."""
    return tuple(_filled(each, row) for each in demand(static, row))


def _filled(wanted: Wanted, row: Mapping[al.Var, Term]) -> Wanted:
    values = {
        variable: row[variable]
        for variable, suppliers in wanted.suppliers.items()
        if OUTER in suppliers and _askable(row[variable])
    }

    def term(node: al.Node) -> al.Node:
        return values.get(node, node) if isinstance(node, al.Var) else node

    triple = wanted.pattern
    predicate = term(triple.predicate) if isinstance(triple.predicate, al.Var | str) else triple.predicate
    pattern = replace(triple, subject=term(triple.subject), predicate=predicate, object=term(triple.object))
    left = {variable: suppliers for variable, suppliers in wanted.suppliers.items() if variable not in values}
    return Wanted(pattern, left)


def _askable(term: Term) -> bool:
    """Whether every server knows a term by its text: no blank node, no literal with a datatype, which has several."""
    if is_blank(term):
        return False
    return is_iri(term) or (is_literal(term) and "^^" not in term[term.rfind('"') :])
