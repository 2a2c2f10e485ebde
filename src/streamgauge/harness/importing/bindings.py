"""SPARQL results as JSON (https://www.w3.org/TR/sparql11-results-json/) to rows; errors name the field."""

from collections.abc import Mapping
from typing import Any

import pyoxigraph as ox

from streamgauge.formats.canonical import parse_term, to_term
from streamgauge.harness.importing.foreign import ForeignError
from streamgauge.model.terms import Row, Term


class Fields:
    """Reads the fields of one file's JSON objects; every error is a ForeignError with the file and the field."""

    def __init__(self, file: str) -> None:
        self._file = file

    def fail(self, where: str, what: str) -> ForeignError:
        """The error for a field."""
        return ForeignError(f"{self._file}: {where or 'the document'} {what}")

    def member(self, value: Any, where: str, name: str, kind: type) -> Any:
        """A member of an object, of that type."""
        if not isinstance(value, Mapping):
            raise self.fail(where, f"is {_short(value)}: an object is expected")
        place = f"{where}.{name}" if where else name
        if name not in value:
            raise self.fail(place, "is missing")
        found = value[name]
        if not isinstance(found, kind) or (kind is int and isinstance(found, bool)):
            raise self.fail(place, f"is {_short(found)}: {_KINDS[kind]} is expected")
        return found

    def variables(self, document: Any, where: str) -> tuple[str, ...]:
        """``head.vars`` of a result."""
        head = self.member(document, where, "head", dict)
        place = f"{where}.head" if where else "head"
        found = self.member(head, place, "vars", list)
        if any(not isinstance(name, str) for name in found) or len(set(found)) < len(found):
            raise self.fail(f"{place}.vars", f"is {_short(found)}: distinct names are expected")
        return tuple(found)

    def row(self, binding: Any, variables: tuple[str, ...], where: str) -> Row:
        """One solution; a variable without a value is unbound, one that ``head.vars`` does not name is refused."""
        if not isinstance(binding, Mapping):
            raise self.fail(where, f"is {_short(binding)}: an object of variables is expected")
        for name in binding:
            if name not in variables:
                raise self.fail(f"{where}.{name}", f"is no variable of head.vars ({', '.join(variables)})")
        return tuple(self._term(binding[name], f"{where}.{name}") if name in binding else None for name in variables)

    def _term(self, value: Any, where: str) -> Term:
        kind = self.member(value, where, "type", str)
        text = self.member(value, where, "value", str)
        try:
            return to_term(_term(kind, text, value))
        except (ValueError, TypeError) as error:
            raise self.fail(where, f"is no RDF term: {error}") from error


_KINDS = {int: "a whole number", str: "text", list: "a list", dict: "an object", bool: "true or false"}


def _short(value: object) -> str:
    return repr(value)[:60]


def _term(kind: str, text: str, value: Mapping[str, Any]) -> ox.NamedNode | ox.BlankNode | ox.Literal:
    match kind:
        case "uri":
            return parse_term(f"<{text}>")
        case "bnode":
            return ox.BlankNode(text.removeprefix("_:"))
        case "literal" | "typed-literal":
            if "xml:lang" in value:
                return ox.Literal(text, language=str(value["xml:lang"]))
            if value.get("datatype") is not None:
                return ox.Literal(text, datatype=ox.NamedNode(str(value["datatype"])))
            return ox.Literal(text)
    raise ValueError(f"its type is {kind!r}: uri, bnode or literal is expected")
