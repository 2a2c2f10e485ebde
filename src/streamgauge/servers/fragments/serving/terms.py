"""Terms as they stand in a fragment's address (Triple Pattern Fragments, 4.2; N-Triples terms are taken too)."""

import re
from typing import Final

import pyoxigraph as ox

from streamgauge.formats.canonical import parse_term, to_term
from streamgauge.model.algebra import Node, Var
from streamgauge.model.terms import Term
from streamgauge.servers.fragments.quads import DEFAULT, DEFAULT_IRI

_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:[^\x00-\x20<>\"{}|^`\\]*")
_VARIABLE = re.compile(r"[?$](\w+)")
_LITERAL = re.compile(
    r'"(?P<text>.*)"(?:@(?P<tag>[A-Za-z]+(?:-[A-Za-z0-9]+)*)(?:--(?P<way>ltr|rtl))?'
    r'|\^\^(?P<open><)?(?P<type>[^<>"]+)(?(open)>))?',
    re.DOTALL,
)
_WAYS: Final = {"ltr": ox.BaseDirection.LTR, "rtl": ox.BaseDirection.RTL, None: None}

SHORT: Final = 300
"""Characters up to which what was read is remembered."""

_FORMS = 'write <IRI>, IRI, "text", "text"@en, "text"^^IRI, ?variable or nothing'


class TermError(ValueError):
    """What is no term; the sentence says what one looks like."""


def read_node(text: str) -> Node | None:
    """The term or variable of a place; ``None`` for an empty one. TermError for anything else."""
    if text == "":
        return None
    if text[0] in "?$":
        return _variable(text)
    if text[0] == '"':
        return _literal(text)
    if text.startswith("<<"):
        return _triple(text)
    if text.startswith("_:"):
        raise TermError(f"{text:.80}: a blank node has no name outside its document: write ?variable, or its genid IRI")
    return _iri(text)


def read_graph(text: str) -> Node | None:
    """The same for a graph's place, where the default graph has a name."""
    if text == "@default":
        return DEFAULT
    node = read_node(text)
    if isinstance(node, str) and not node.startswith("<"):
        raise TermError(f"{text:.80}: a graph is an IRI: {_FORMS}")
    return DEFAULT if node == DEFAULT_IRI else node


def canonical(text: Term) -> Term:
    """The canonical form of an N-Triples term; TermError for what is none."""
    try:
        return to_term(parse_term(text))
    except ValueError as error:
        raise TermError(str(error)) from error


def _variable(text: str) -> Var:
    found = _VARIABLE.fullmatch(text)
    if found is None:
        raise TermError(f"{text:.80}: a variable is ? and letters, digits or _")
    return Var(found[1])


def _iri(text: str) -> Term:
    bare = text[1:-1] if text.startswith("<") and text.endswith(">") else text
    if not _ABSOLUTE.fullmatch(bare):
        raise TermError(f"{text:.80}: not an absolute IRI: {_FORMS}")
    return f"<{bare}>"


def _literal(text: str) -> Term:
    found = _LITERAL.fullmatch(text)
    if found is None:
        raise TermError(f"{text:.80}: not a literal: {_FORMS}")
    if found["type"] and not _ABSOLUTE.fullmatch(found["type"]):
        raise TermError(f"{found['type']:.80}: not an absolute IRI, as a datatype is")
    try:
        return to_term(_made(found))
    except ValueError as error:
        raise TermError(f"{text:.80}: {error}") from error


def _made(found: re.Match[str]) -> ox.Literal:
    if found["type"]:
        return ox.Literal(found["text"], datatype=ox.NamedNode(found["type"]))
    return ox.Literal(found["text"], language=found["tag"], direction=_WAYS[found["way"]])


def _triple(text: str) -> Term:
    try:
        return canonical(text)
    except TermError as error:
        raise TermError(f"{text:.80}: not a triple term: write <<( subject predicate object )>>") from error
