"""Numbers are sent with another datatype than the stream's (C-SPARQL as CSRBench fed it), or as strings."""

from collections.abc import Iterator
from decimal import ROUND_DOWN
from functools import partial

from streamgauge.formats.canonical import Canonical, parse_term
from streamgauge.model.terms import XSD, Term, datatype, is_literal
from streamgauge.model.verdict import Part
from streamgauge.oracle.diagnosis.models import Case, Fault, Rows, Seen
from streamgauge.oracle.worlds.intervals import finite


def proposals(seen: Seen) -> Iterator[Fault]:
    """A fault for each XSD datatype of the recorded literals, xsd:string included."""
    kinds = {
        kind
        for row in seen.all_rows()
        for term in row
        if term is not None and is_literal(term) and (kind := datatype(term)) is not None
    }
    for kind in sorted(kind for kind in kinds if kind.startswith(XSD) and _is_iri(kind)):
        name = "xsd:" + kind.removeprefix(XSD)
        part = Part(f"numbers as {name}", f"Numbers come as {name}, whatever the stream's datatype is.")
        yield Fault(part, partial(_retype, kind=kind))


def _is_iri(kind: str) -> bool:
    """Whether a literal with this datatype can be written: engines also send malformed terms."""
    try:
        parse_term(f'"0"^^<{kind}>')
    except ValueError:
        return False
    return True


def _retype(case: Case, kind: str) -> Case:
    # The same numbers recur in most windows, and parsing a term is slow.
    known: dict[Term, Term] = {}
    canonical = Canonical()

    def typed(term: Term | None) -> Term | None:
        if term is None or datatype(term) == kind or finite(term) is None:
            return term
        if term not in known:
            known[term] = canonical.term(parse_term(_literal(term, kind)))
        return known[term]

    def retyped(rows: Rows) -> Rows:
        return tuple(tuple(map(typed, row)) for row in rows)

    return case.answering(retyped)


def _literal(term: Term, kind: str) -> Term:
    """The number as a literal of another datatype; as an xsd:integer it is truncated."""
    value = finite(term)
    assert value is not None
    # Not by int(): str() raises ValueError for more than 4,300 digits (sys.set_int_max_str_digits).
    whole = f"{value.to_integral_value(ROUND_DOWN):f}"
    lexical = whole if kind == XSD + "integer" else term[1 : term.rindex('"')]
    return f'"{lexical}"^^<{kind}>'
