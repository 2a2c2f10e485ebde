"""Literals against datatypes (OWL 2 Profiles, table 8; XML Schema 1.1 Datatypes, 3.3): which are in, which are out.

Value spaces of primitive datatypes are disjoint (OWL 2 Structural Specification, 4): a string is no number, a float no
decimal. A datatype that is not known has no answer.
"""

import re
from typing import Final

from streamgauge.model.terms import XSD, Term, is_literal, lexical
from streamgauge.sparql.comparison import equal
from streamgauge.sparql.values import DECIMAL, ILL, INTEGER, LANG_STRING, TAGGED, read

RDF: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS: Final = "http://www.w3.org/2000/01/rdf-schema#"
LITERAL: Final = f"<{RDFS}Literal>"
_NAME: Final = r"[^\W\d][\w.\-·]*"
_TEXTS: Final = {
    "string": re.compile(r".*", re.DOTALL),
    "normalizedString": re.compile(r"[^\t\n\r]*"),
    "token": re.compile(r"(?:[^\s]+(?: [^\s]+)*)?"),
    "language": re.compile(r"[a-zA-Z]{1,8}(?:-[a-zA-Z0-9]{1,8})*"),
    "Name": re.compile(rf"[:]?{_NAME}(?::[\w.\-·]*)*"),
    "NCName": re.compile(_NAME),
    "NMTOKEN": re.compile(r"[\w.\-:·]+"),
}
_WHOLE: Final[dict[str, tuple[int | None, int | None]]] = {
    "integer": (None, None),
    "nonNegativeInteger": (0, None),
    "nonPositiveInteger": (None, 0),
    "positiveInteger": (1, None),
    "negativeInteger": (None, -1),
    **{name: (-(1 << bits - 1), (1 << bits - 1) - 1) for name, bits in (("long", 64), ("int", 32), ("short", 16))},
    "byte": (-128, 127),
    **{f"unsigned{name}": (0, (1 << bits) - 1) for name, bits in (("Long", 64), ("Int", 32), ("Short", 16))},
    "unsignedByte": (0, 255),
}
_ALONE: Final = (
    "float", "double", "boolean", "date", "time", "gYear", "gYearMonth", "gMonth", "gMonthDay", "gDay", "hexBinary",
    "base64Binary", "anyURI", "duration",
)  # fmt: skip
_FAMILIES: Final = {
    **{XSD + name: "string" for name in _TEXTS},
    **{XSD + name: "decimal" for name in (*_WHOLE, "decimal")},
    **{XSD + name: "dateTime" for name in ("dateTime", "dateTimeStamp")},
    **{XSD + name: "duration" for name in ("yearMonthDuration", "dayTimeDuration")},
    **{XSD + name: name for name in _ALONE},
    **{RDF + name: name for name in ("XMLLiteral", "HTML")},
    LANG_STRING: "langString",
}
"""Datatypes, each with the primitive one whose values it has."""


def is_datatype(term: Term) -> bool:
    """Whether a class is a datatype whose values are known, or all literals."""
    return term in (LITERAL, f"<{RDF}PlainLiteral>") or term[1:-1] in _FAMILIES


def inside(literal: Term, datatype: Term) -> bool:
    """Whether a term is a literal whose value the datatype has (rule dt-type2)."""
    return is_literal(literal) and _has(literal, datatype) is True


def outside(literal: Term, datatype: Term) -> bool:
    """Whether a term is a literal whose value the datatype has not (rule dt-not-type)."""
    return is_literal(literal) and _has(literal, datatype) is False


def unequal(one: Term, other: Term) -> bool:
    """Whether two terms are literals of different values (rule dt-diff); values that are not known are no reason."""
    if one == other or not (is_literal(one) and is_literal(other)):
        return False
    families = _family(one), _family(other)
    if None in families or ILL in (read(one).kind, read(other).kind):
        return False
    if families[0] != families[1]:
        return True
    if families[0] == "string":
        return lexical(one) != lexical(other)
    return equal(one, other) is not True


def _has(literal: Term, datatype: Term) -> bool | None:
    """Whether a datatype has a literal's value; ``None`` where one of the two is not known."""
    family = _family(literal)
    if datatype == LITERAL:
        return True
    if read(literal).kind == ILL:
        return False
    if datatype == f"<{RDF}PlainLiteral>":
        return None if family is None else family in ("string", "langString")
    wanted = _FAMILIES.get(datatype[1:-1])
    if wanted is None or family is None:
        return None
    return wanted == family and _within(literal, datatype.removeprefix(f"<{XSD}")[:-1])


def _within(literal: Term, name: str) -> bool:
    """Whether a value of the right primitive datatype is in the derived one."""
    value = read(literal)
    if name in _TEXTS:
        return _TEXTS[name].fullmatch(lexical(literal)) is not None
    if name in _WHOLE:
        least, most = _WHOLE[name]
        if value.kind not in (INTEGER, DECIMAL) or value.value != int(value.value):
            return False
        return (least is None or least <= value.value) and (most is None or value.value <= most)
    if name == "dateTimeStamp":
        return re.search(r"(?:Z|[+-]\d\d:\d\d)$", lexical(literal)) is not None
    return True


def _family(literal: Term) -> str | None:
    """The primitive datatype of a literal's value."""
    if literal[-1] == '"':
        return "string"
    if read(literal).kind == TAGGED:
        return "langString"
    return _FAMILIES.get(literal[literal.rindex('"') + 4 : -1])
