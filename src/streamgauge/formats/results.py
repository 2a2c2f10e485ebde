"""Rows as SPARQL 1.2 Query Results JSON (W3C working draft, 2025), from canonical terms and back.

A superset of SPARQL 1.1's: 1.2 adds triple terms and base directions (``its:dir``).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, TypeAlias

import msgspec
import pyoxigraph as ox

from streamgauge.formats.canonical import parse_term, to_term
from streamgauge.model.terms import XSD, Row, Term, is_blank, is_iri

Json: TypeAlias = dict[str, Any]

MEDIA_TYPE: Final = "application/sparql-results+json"
_STRING: Final = f"{XSD}string"


class ResultsError(ValueError):
    """JSON that is not a query result; the sentence says what is wrong."""


def results(variables: Sequence[str], rows: Iterable[Row]) -> Json:
    """``{"head": {"vars"}, "results": {"bindings"}}``; unbound variables are omitted from bindings."""
    bindings = [
        {name: term_json(term) for name, term in zip(variables, row, strict=True) if term is not None} for row in rows
    ]
    return {"head": {"vars": list(variables)}, "results": {"bindings": bindings}}


def pieces(variables: Sequence[str], rows: Iterable[Row], size: int = 500) -> Iterator[bytes]:
    """The text of ``results``, ``size`` rows at a time, so that no piece takes long."""
    yield b'{"head":' + msgspec.json.encode({"vars": list(variables)}) + b',"results":{"bindings":['
    waiting, comma = iter(rows), b""
    while some := list(islice(waiting, size)):
        # Without the brackets of each piece's list: all pieces are items of one.
        yield comma + msgspec.json.encode(results(variables, some)["results"]["bindings"])[1:-1]
        comma = b","
    yield b"]}}"


def term_json(term: Term) -> Json:
    """A term as an object with ``type`` and ``value``."""
    if is_iri(term):
        return {"type": "uri", "value": term[1:-1]}
    if is_blank(term):
        return {"type": "bnode", "value": term[2:]}
    return _term_json(parse_term(term))


def _term_json(term: ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple) -> Json:
    if isinstance(term, ox.Triple):
        parts = {name: _term_json(getattr(term, name)) for name in ("subject", "predicate", "object")}
        return {"type": "triple", "value": parts}
    if not isinstance(term, ox.Literal):
        return {"type": "uri" if isinstance(term, ox.NamedNode) else "bnode", "value": term.value}
    literal: Json = {"type": "literal", "value": term.value}
    if term.language is not None:
        literal["xml:lang"] = term.language
        if term.direction is not None:
            literal["its:dir"] = term.direction.value
    elif term.datatype.value != _STRING:
        literal["datatype"] = term.datatype.value
    return literal


def rows(document: object) -> tuple[tuple[str, ...], list[Row]]:
    """The variables and rows of a result; a boolean is one row over ``ask``. ResultsError."""
    # Both members at once would be neither form of result (SPARQL 1.1 Query Results JSON, 3).
    if isinstance(document, Mapping) and isinstance(document.get("boolean"), bool) and "results" not in document:
        truth = "true" if document["boolean"] else "false"
        return ("ask",), [(f'"{truth}"^^<{XSD}boolean>',)]
    try:
        variables, bindings = tuple(_at(document, "head")["vars"]), _at(document, "results")["bindings"]
        return variables, [tuple(_term(binding.get(name)) for name in variables) for binding in bindings]
    except ResultsError as error:
        raise ResultsError(f"not a SPARQL result: {error}") from error
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ResultsError(f"not a SPARQL result: {error!r:.200}") from error


def read_rows(text: bytes | str | msgspec.Raw) -> tuple[tuple[str, ...], list[Row]]:
    """``rows`` of JSON text; bindings are decoded one at a time, since objects take ten times as much as text."""
    try:
        members = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
        document: Json = {name: msgspec.json.decode(member) for name, member in members.items() if name != "results"}
        if "results" in members:
            bindings = msgspec.json.decode(members["results"], type=dict[str, list[msgspec.Raw]])["bindings"]
            document["results"] = {"bindings": _decoded(bindings)}
    except (KeyError, ValueError, RecursionError) as error:
        raise ResultsError(f"not a SPARQL result: {error!r:.200}") from error
    return rows(document)


def _decoded(texts: list[msgspec.Raw]) -> Iterator[Json]:
    """The object of each text, which is released after that."""
    # Popped from the end, so that each text is released when its object exists.
    texts.reverse()
    while texts:
        yield msgspec.json.decode(texts.pop())


def _at(document: object, name: str) -> Mapping[str, Any]:
    if not isinstance(document, Mapping) or not isinstance(document.get(name), Mapping):
        raise ResultsError(f"a SPARQL result has an object {name}")
    member: Mapping[str, Any] = document[name]
    return member


def _term(data: Mapping[str, Any] | None) -> Term | None:
    return None if data is None else read_term(data)


def read_term(data: Mapping[str, Any]) -> Term:
    """The term of an object with ``type`` and ``value``; ResultsError."""
    try:
        return to_term(_read(data))
    except KeyError as error:
        raise ResultsError(f"not an RDF term: its member {error} is missing") from error
    except (TypeError, ValueError, RecursionError) as error:
        raise ResultsError(f"not an RDF term: {error}") from error


def _read(data: Mapping[str, Any]) -> ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple:
    value = data["value"]
    match data["type"]:
        case "uri":
            return ox.NamedNode(value)
        case "bnode":
            # Some servers write the label with its prefix, which the specification leaves out.
            return ox.BlankNode(value.removeprefix("_:"))
        case "literal" | "typed-literal":
            return _read_literal(value, data.get("xml:lang"), data.get("its:dir"), data.get("datatype"))
        case "triple":
            return ox.Triple(*(_read(value[name]) for name in ("subject", "predicate", "object")))  # type: ignore[arg-type]
    raise ValueError(f"its type is {data['type']!r:.40}: uri, literal, bnode or triple is expected")


def _read_literal(value: str, language: str | None, direction: str | None, datatype: str | None) -> ox.Literal:
    """A literal; a text with a language may also have its datatype, as from older servers."""
    if language is None:
        way = None if direction is None else ox.BaseDirection(direction)
        return ox.Literal(value, direction=way, datatype=None if datatype is None else ox.NamedNode(datatype))
    return ox.Literal(value, language=language, direction=None if direction is None else ox.BaseDirection(direction))
