"""Terms, nodes, paths and triple patterns as SPARQL text."""

import re
from typing import Final

from streamgauge.model.algebra import Alternative, Inverse, NegatedSet, Node, Path, Repeat, Sequence, TriplePattern, Var
from streamgauge.model.terms import XSD, Term

_PLAIN_NUMBER: Final = re.compile(rf'"(-?\d+(\.\d+)?)"\^\^<{re.escape(XSD)}(integer|decimal)>')
_PLAIN_BOOLEAN: Final = re.compile(rf'"(true|false)"\^\^<{re.escape(XSD)}boolean>')
_ESCAPE: Final = re.compile(r"\\\\([uU])|\\.")


def term(value: Term) -> str:
    """A term: plain numbers and booleans short, the rest as N-Triples writes it."""
    number = _PLAIN_NUMBER.fullmatch(value)
    if number and number.group(3) == "decimal":
        return number.group(1) if number.group(2) else f"{number.group(1)}.0"
    if number and not number.group(2):
        return number.group(1)
    boolean = _PLAIN_BOOLEAN.fullmatch(value)
    if boolean:
        return boolean.group(1)
    return _ESCAPE.sub(_unambiguous, value) if value[0] == '"' and "\\" in value else value


def _unambiguous(escape: re.Match[str]) -> str:
    """A "u" after an escaped backslash must not look like a code point escape: it becomes one itself."""
    return f"\\\\\\u{ord(escape.group(1)):04X}" if escape.group(1) else escape.group()


def variable(var: Var) -> str:
    """A variable; those that no text names (``.agg0``, ``_:0``) get a name with an underscore."""
    return "?" + re.sub(r"\W", "_", var.name)


def node(value: Node) -> str:
    """A variable, blank node or term in a triple pattern."""
    if not isinstance(value, Var):
        return term(value)
    return f"_:b{value.name[2:]}" if value.name.startswith("_:") else variable(value)


def triple(pattern: TriplePattern) -> str:
    """A triple pattern with its full stop."""
    verb = pattern.predicate
    middle = node(verb) if isinstance(verb, Var | str) else path(verb)
    return f"{node(pattern.subject)} {middle} {node(pattern.object)} ."


def path(way: Path) -> str:
    """A property path, in brackets where it has parts."""
    match way:
        case Inverse(path=inner):
            return f"(^{path(inner)})"
        case Sequence(steps=steps):
            return f"({'/'.join(map(path, steps))})"
        case Alternative(choices=choices):
            return f"({'|'.join(map(path, choices))})"
        case Repeat(path=inner, modifier=modifier):
            return f"({path(inner)}{modifier})"
        case NegatedSet(forward=forward, backward=backward):
            return f"!({'|'.join((*forward, *(f'^{name}' for name in backward)))})"
        case _:
            return str(way)
