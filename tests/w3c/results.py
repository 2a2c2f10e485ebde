"""Expected answers of evaluation tests, and whether an answer is the expected one.

Terms are compared as terms, but for xsd:double, xsd:float and xsd:decimal (as far as they are written), and language
tags without regard to case. Blank nodes may have any names, the same in all rows, in triple terms too.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyoxigraph as ox

from streamgauge.formats.canonical import to_term, to_triple
from streamgauge.model.terms import Row, Term, Triple, is_blank, is_literal, is_triple, triple_parts, triple_term
from tests.sparql.suite import value

_RS: Final = "http://www.w3.org/2001/sw/DataAccess/tests/result-set#"
_TYPE: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
_TRIPLE: Final = ("subject", "predicate", "object")
_BLANK: Final = re.compile(r'"(?:[^"\\]|\\.)*"|_:[^\s)]+')


@dataclass(frozen=True)
class Answer:
    """Columns and rows; of CONSTRUCT three columns, of ASK one row of one boolean."""

    variables: tuple[str, ...]
    rows: tuple[Row, ...]
    ordered: bool = False


def read_triples(path: Path, base: str, label: str) -> dict[str | None, list[Triple]]:
    """The triples of an RDF file by graph (its IRI, ``None`` for the default graph), blank nodes apart by the label."""
    graphs: dict[str | None, list[Triple]] = {}
    names: dict[Term, Term] = {}
    for quad in ox.parse(path=str(path), base_iri=base):
        triple = to_triple(quad)
        name = None if isinstance(quad.graph_name, ox.DefaultGraph) else quad.graph_name.value
        subject, predicate, item = (_relabelled(term, names, label) for term in triple)
        graphs.setdefault(name, []).append((subject, predicate, item))
    return graphs


def _relabelled(term: Term, names: dict[Term, Term], label: str) -> Term:
    if "_:" not in term:
        return term
    return _BLANK.sub(
        lambda match: names.setdefault(match[0], f"_:{label}b{len(names)}") if match[0][0] == "_" else match[0], term
    )


def expected(path: Path, base: str, ordered: bool) -> Answer:
    """The answer that a file holds: SPARQL results, a result set in RDF, or the triples of a CONSTRUCT."""
    formats = {
        ".srx": ox.QueryResultsFormat.XML,
        ".srj": ox.QueryResultsFormat.JSON,
        ".tsv": ox.QueryResultsFormat.TSV,
    }
    if path.suffix not in formats:
        return _in_rdf(path, base)
    answer = ox.parse_query_results(path=str(path), format=formats[path.suffix])
    if isinstance(answer, ox.QueryBoolean):
        return _boolean(bool(answer))
    assert isinstance(answer, ox.QuerySolutions)
    rows = tuple(tuple(None if cell is None else to_term(cell) for cell in row) for row in answer)
    return Answer(tuple(variable.value for variable in answer.variables), rows, ordered)


def _boolean(answer: bool) -> Answer:
    return Answer(("ask",), ((f'"{str(answer).lower()}"^^<http://www.w3.org/2001/XMLSchema#boolean>',),))


def _in_rdf(path: Path, base: str) -> Answer:
    triples = [triple for some in read_triples(path, base, "e").values() for triple in some]
    sets = [subject for subject, predicate, item in triples if (predicate, item) == (f"<{_TYPE}>", f"<{_RS}ResultSet>")]
    if not sets:
        return Answer(_TRIPLE, tuple(triples))

    def objects(subject: Term, name: str) -> list[Term]:
        return [item for one, predicate, item in triples if one == subject and predicate == f"<{_RS}{name}>"]

    (result,) = sets
    if truth := objects(result, "boolean"):
        return _boolean(truth[0].startswith('"true"'))
    variables = tuple(sorted(item.strip('"') for item in objects(result, "resultVariable")))
    solutions = objects(result, "solution")
    indexes = {node: int(item.split('"')[1]) for node in solutions for item in objects(node, "index")}
    rows: list[Row] = []
    for solution in sorted(solutions, key=lambda node: indexes.get(node, 0)):
        bindings = objects(solution, "binding")
        cells = {objects(node, "variable")[0].strip('"'): objects(node, "value")[0] for node in bindings}
        rows.append(tuple(cells.get(name) for name in variables))
    return Answer(variables, tuple(rows), bool(indexes))


def difference(wanted: Answer, result: Answer, lax: bool = False) -> str:
    """Empty when the answers are the same, else a sentence that shows the rows of each; ``lax`` ignores repetition."""
    if set(wanted.variables) != set(result.variables):
        return f"expected the columns {sorted(wanted.variables)}, got {sorted(result.variables)}"
    at = [result.variables.index(name) for name in wanted.variables]
    left = [tuple(map(_comparable, row)) for row in wanted.rows]
    right = [tuple(_comparable(row[place]) for place in at) for row in result.rows]
    if lax or wanted.variables == _TRIPLE:
        left, right = list(dict.fromkeys(left)), list(dict.fromkeys(right))
    if len(left) == len(right) and _matches(left, right, {}, wanted.ordered and result.ordered):
        return ""
    return f"expected {_shown(left, right)}, got {_shown(right, left)}"


def _shown(rows: Sequence[Row], others: Sequence[Row]) -> str:
    apart = [row for row in rows if row not in others]
    return f"{len(rows)} rows with {sorted(apart, key=str)[:5]}"


def _comparable(term: Term | None) -> Term | None:
    """The term that stands for all terms that count as equal to this one, blank nodes left alone."""
    if term is None or not (is_literal(term) or is_triple(term)):
        return term
    if is_triple(term):
        subject, predicate, item = (_comparable(part) or "" for part in triple_parts(term))
        return triple_term((subject, predicate, item))
    text, mark, tag = term.rpartition("@")
    return f"{text}@{tag.lower()}" if mark and text.endswith('"') else value(term)


def _matches(wanted: Sequence[Row], result: Sequence[Row], names: dict[Term, Term], ordered: bool) -> bool:
    """Whether each wanted row takes one of the others under one renaming of blank nodes."""
    if not wanted:
        return True
    first, tried = wanted[0], set[Row]()
    for place, row in enumerate(result[:1] if ordered else result):
        further = _renamed(first, row, names) if row not in tried else None
        if further is not None and _matches(wanted[1:], [*result[:place], *result[place + 1 :]], further, ordered):
            return True
        tried.add(row)
    return False


def _renamed(one: Row, other: Row, names: dict[Term, Term]) -> dict[Term, Term] | None:
    """The names under which two rows are the same, ``None`` where no renaming makes them so."""
    names = dict(names)
    for left, right in zip(map(_atoms, one), map(_atoms, other), strict=True):
        if len(left) != len(right):
            return None
        for first, second in zip(left, right, strict=True):
            if not (is_blank(first) and is_blank(second)):
                if first != second:
                    return None
            elif names.setdefault(first, second) != second or list(names.values()).count(second) > 1:
                return None
    return names


def _atoms(term: Term | None) -> list[Term]:
    """The parts of a term that are no triple terms, in order."""
    if term is None:
        return [""]
    return [atom for part in triple_parts(term) for atom in _atoms(part)] if is_triple(term) else [term]
