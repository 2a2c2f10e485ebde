"""The W3C SPARQL 1.1 evaluation tests as values, for any evaluator.

    root = shared_data / "w3c-sparql11"
    for case in cases(root):                    # 225, by name, e.g. "aggregates/agg01"
        case.query                              # text with BASE; parse_sparql(case.query) is its algebra
        case.data                               # the default graph: canonical triples
        case.graphs                             # named graphs: {"<iri>": triples}
        case.expected                           # Result(kind, variables, rows, ordered)
        assert not difference(case.expected, actual)   # "" or a sentence with the missing and surplus rows

``Result.kind`` is "solutions" (rows over ``variables``), "triples" (rows of three) or "boolean" (one row, one
canonical xsd:boolean). Columns are matched by name, rows as a bag (in order when ``expected.ordered``), blank nodes
by isomorphism, xsd:float and xsd:double by 5 and 9 significant digits, xsd:decimal by 12 decimals, the rest as terms.
``evaluate(case, text)`` is pyoxigraph's answer; ``rejected(root)`` are the texts that a parser must refuse.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

import pyoxigraph as ox

from streamgauge.formats.canonical import Canonical, parse_term
from streamgauge.model.answer import AnswerKind
from streamgauge.model.terms import XSD, Row, Term, Triple, datatype, is_blank

BASE = "http://www.w3.org/2009/sparql/docs/tests/data-sparql11/"
_MF = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#"
_QT = "http://www.w3.org/2001/sw/DataAccess/tests/test-query#"
_RS = "http://www.w3.org/2001/sw/DataAccess/tests/result-set#"
_TYPE = ox.NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
_CANONICAL = Canonical()
_READABLE = {".ttl": ox.RdfFormat.TURTLE, ".rdf": ox.RdfFormat.RDF_XML, ".nt": ox.RdfFormat.N_TRIPLES}


@dataclass(frozen=True)
class Result:
    """What a query gives: columns and canonical rows."""

    kind: AnswerKind
    variables: tuple[str, ...]
    rows: tuple[Row, ...]
    ordered: bool = False


@dataclass(frozen=True)
class Case:
    """One test of the suite."""

    name: str
    folder: str
    query: str
    data: tuple[Triple, ...]
    graphs: Mapping[Term, tuple[Triple, ...]]
    expected: Result = field(repr=False)

    def store(self) -> ox.Store:
        """The data in a pyoxigraph store."""
        store = ox.Store()
        named = [(ox.DefaultGraph(), self.data), *((parse_term(name), rows) for name, rows in self.graphs.items())]
        for graph, triples in named:
            if isinstance(graph, ox.NamedNode):
                store.add_graph(graph)
            store.extend(ox.Quad(*map(parse_term, triple), graph) for triple in triples)
        return store


def cases(root: Path) -> tuple[Case, ...]:
    """Every evaluation test, folder by folder, in the order of the manifests' names."""
    return tuple(case for manifest in sorted(root.glob("*/manifest.ttl")) for case in _folder(manifest))


def rejected(root: Path) -> dict[str, str]:
    """The texts of the negative syntax tests, by name."""
    results = {}
    for manifest in sorted(root.glob("*/manifest.ttl")):
        graph = _store(manifest)
        for kind in ("NegativeSyntaxTest11", "NegativeSyntaxTest"):
            for quad in graph.quads_for_pattern(None, _TYPE, ox.NamedNode(_MF + kind)):
                path = _path(manifest, _one(graph, quad.subject, _MF + "action"))
                results[_name(manifest, quad.subject)] = _text(path)
    return results


def from_turtle(text: str) -> tuple[Triple, ...]:
    """Canonical triples of a Turtle text."""
    return _CANONICAL.triples(ox.parse(text, format=ox.RdfFormat.TURTLE))


def evaluate(case: Case, text: str | None = None) -> Result:
    """pyoxigraph's answer to the case's query, or to another text on its data."""
    return from_pyoxigraph(case.store().query(text or case.query), case.expected.ordered)


def from_pyoxigraph(answer: object, ordered: bool = False) -> Result:
    """A pyoxigraph answer as a Result."""
    if isinstance(answer, ox.QueryBoolean):
        return _boolean(bool(answer))
    if isinstance(answer, ox.QueryTriples):
        return _triples(_CANONICAL.triples(answer))
    assert isinstance(answer, ox.QuerySolutions)
    rows = tuple(tuple(None if cell is None else _CANONICAL.term(cell) for cell in row) for row in answer)
    return Result("solutions", tuple(variable.value for variable in answer.variables), rows, ordered)


def difference(expected: Result, actual: Result) -> str:
    """Empty when the two are the same answer, else a sentence that shows how they differ."""
    if expected.kind != actual.kind:
        return f"expected {expected.kind}, got {actual.kind}"
    if expected.kind == "solutions" and set(expected.variables) != set(actual.variables):
        return f"expected the columns {expected.variables}, got {actual.variables}"
    wanted, got = _keys(expected, expected.variables), _keys(actual, expected.variables)
    if expected.kind == "triples":
        wanted, got = sorted(set(wanted), key=str), sorted(set(got), key=str)
    if wanted == got or (not expected.ordered and Counter(wanted) == Counter(got)):
        return ""
    if _has_blanks(wanted) and _has_blanks(got) and _canonical(wanted, expected) == _canonical(got, expected):
        return ""
    missing, surplus = Counter(wanted) - Counter(got), Counter(got) - Counter(wanted)
    if not missing and not surplus:
        return f"the order differs: expected {wanted}, got {got}"
    return f"missing {sorted(missing.elements(), key=str)}; surplus {sorted(surplus.elements(), key=str)}"


def value(term: Term | None) -> Term | None:
    """The term that stands for all terms counted as equal to this one."""
    kind = datatype(term) if term else None
    if term is None or kind is None or not kind.startswith(XSD):
        return term
    text = term[1 : term.rfind('"')]
    try:
        match kind.removeprefix(XSD):
            case "double":
                return f'"{float(text):.9g}"^^<{kind}>'
            case "float":
                return f'"{float(text):.5g}"^^<{kind}>'
            case "decimal":
                return f'"{Decimal(text).quantize(Decimal("1e-12")).normalize():f}"^^<{kind}>'
    except (ValueError, ArithmeticError):
        pass
    return term


def _keys(result: Result, variables: tuple[str, ...]) -> list[Row]:
    if result.kind != "solutions":
        return [tuple(map(value, row)) for row in result.rows]
    positions = [result.variables.index(name) for name in variables]
    return [tuple(value(row[position]) for position in positions) for row in result.rows]


def _has_blanks(rows: Iterable[Row]) -> bool:
    return any(cell is not None and is_blank(cell) for row in rows for cell in row)


def _canonical(rows: list[Row], result: Result) -> list[str]:
    """The rows as a canonical data set: equal for isomorphic bags (or lists) of rows."""
    dataset = ox.Dataset(_quads(rows, result))
    dataset.canonicalize(ox.CanonicalizationAlgorithm.UNSTABLE)
    return sorted(map(str, dataset))


def _quads(rows: list[Row], result: Result) -> Iterator[ox.Quad]:
    for index, row in enumerate(rows):
        if result.kind == "triples":
            yield ox.Quad(*map(_term, row))
            continue
        subject = ox.BlankNode(f"row{index}")
        place = str(index) if result.ordered else ""
        yield ox.Quad(subject, ox.NamedNode("urn:row"), ox.Literal(place))
        for column, cell in enumerate(row):
            if cell is not None:
                yield ox.Quad(subject, ox.NamedNode(f"urn:column:{column}"), _term(cell))


def _term(cell: Term | None) -> ox.NamedNode | ox.BlankNode | ox.Literal:
    assert cell is not None
    return ox.BlankNode(f"data{cell[2:]}") if is_blank(cell) else parse_term(cell)


def _folder(manifest: Path) -> Iterator[Case]:
    graph = _store(manifest)
    tests = graph.quads_for_pattern(None, _TYPE, ox.NamedNode(_MF + "QueryEvaluationTest"))
    for test in sorted((quad.subject for quad in tests), key=str):
        action = _one(graph, test, _MF + "action")
        query = _path(manifest, _one(graph, action, _QT + "query"))
        data = [_path(manifest, node) for node in _all(graph, action, _QT + "data")]
        named = [_path(manifest, node) for node in _all(graph, action, _QT + "graphData")]
        text = _text(query)
        yield Case(
            _name(manifest, test),
            manifest.parent.name,
            text,
            tuple(triple for index, path in enumerate(data) for triple in _read(path, f"d{index}")),
            {f"<{_iri(path)}>": tuple(_read(path, f"g{index}")) for index, path in enumerate(named)},
            _expected(_path(manifest, _one(graph, test, _MF + "result")), text),
        )


def _store(path: Path) -> ox.Store:
    store = ox.Store()
    store.extend(ox.parse(path=str(path), format=_READABLE[path.suffix], base_iri=_iri(path)))
    return store


def _one(graph: ox.Store, subject: object, predicate: str) -> object:
    (result,) = _all(graph, subject, predicate)
    return result


def _all(graph: ox.Store, subject: object, predicate: str) -> list[object]:
    quads = graph.quads_for_pattern(subject, ox.NamedNode(predicate), None)  # type: ignore[arg-type]
    return sorted((quad.object for quad in quads), key=str)


def _path(manifest: Path, node: object) -> Path:
    assert isinstance(node, ox.NamedNode)
    return manifest.parent / node.value.removeprefix(f"{BASE}{manifest.parent.name}/")


def _name(manifest: Path, test: object) -> str:
    return f"{manifest.parent.name}/{str(test).rpartition('#')[2].rstrip('>')}"


def _iri(path: Path) -> str:
    return f"{BASE}{path.parent.name}/{path.name}"


def _text(path: Path) -> str:
    return f"BASE <{_iri(path)}>\n{path.read_text(encoding='utf-8')}"


def _read(path: Path, label: str) -> Iterator[Triple]:
    """The canonical triples of a file, blank nodes numbered in the order of the file."""
    numbers: dict[Term, Term] = {}
    for quad in ox.parse(path=str(path), format=_READABLE[path.suffix], base_iri=_iri(path)):
        subject, predicate, item = _CANONICAL.triple(quad)
        yield _numbered(subject, numbers, label), predicate, _numbered(item, numbers, label)


def _numbered(term: Term, numbers: dict[Term, Term], label: str) -> Term:
    return numbers.setdefault(term, f"_:{label}b{len(numbers)}") if is_blank(term) else term


def _expected(path: Path, query: str) -> Result:
    formats = {".srx": ox.QueryResultsFormat.XML, ".srj": ox.QueryResultsFormat.JSON}
    if path.suffix in formats:
        answer = ox.parse_query_results(path=str(path), format=formats[path.suffix])
        return from_pyoxigraph(answer, _is_ordered(query))
    store = _store(path)
    sets = list(store.quads_for_pattern(None, _TYPE, ox.NamedNode(_RS + "ResultSet")))
    return _result_set(store, sets[0].subject) if sets else _triples(_read(path, "e"))


def _result_set(store: ox.Store, node: object) -> Result:
    """A result written in the DAWG's result-set vocabulary."""
    variables = tuple(item.value for item in _all(store, node, _RS + "resultVariable"))  # type: ignore[attr-defined]
    rows = []
    for solution in _all(store, node, _RS + "solution"):
        bindings = _all(store, solution, _RS + "binding")
        cells = {_one(store, item, _RS + "variable").value: _one(store, item, _RS + "value") for item in bindings}  # type: ignore[attr-defined]
        rows.append(tuple(_CANONICAL.term(cells[name]) if name in cells else None for name in variables))  # type: ignore[arg-type]
    return Result("solutions", variables, tuple(rows))


def _triples(triples: Iterable[Triple]) -> Result:
    return Result("triples", ("subject", "predicate", "object"), tuple(triples))


def _boolean(answer: bool) -> Result:
    return Result("boolean", ("ask",), ((f'"{str(answer).lower()}"^^<{XSD}boolean>',),))


def _is_ordered(query: str) -> bool:
    """Whether ORDER BY belongs to the outermost SELECT: it comes after the last closing brace."""
    return "ORDER BY" in query.rpartition("}")[2].upper()
