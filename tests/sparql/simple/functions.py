"""The functions and casts of SPARQL 1.1 (17.4, 17.5), arithmetic of numbers, and the effective boolean value."""

import hashlib
import math
import re
from collections.abc import Callable
from fractions import Fraction
from urllib.parse import quote

from tests.sparql.simple.choices import Choices, ExpressionError, OpenError
from tests.sparql.simple.values import (
    INTEGERS,
    XSD,
    Computed,
    Moment,
    Number,
    as_kind,
    boolean,
    fields,
    float32,
    is_iri,
    is_literal,
    is_triple,
    lexical,
    literal,
    promoted,
    same,
    split,
    term,
    triple,
    value,
)

STRING = XSD + "string"


def truth(cell: str, choices: Choices) -> bool:
    """The effective boolean value (17.2.2); SPARQL 1.2 gives none to a language-tagged string, 1.1 that of its text."""
    text, kind, language = split(cell)
    if language and not choices.policy("a language-tagged string has no truth"):
        return text != ""
    if kind == STRING and not language:
        return text != ""
    known = value(cell)
    if isinstance(known, bool):
        return known
    if isinstance(known, Number):
        return known.number == known.number and known.number != 0
    raise ExpressionError("no effective boolean value")


NUMERIC = frozenset(INTEGERS) | {"decimal", "float", "double"}


def numeric(cell: str) -> Number:
    """The number of a term."""
    known = value(cell)
    if not isinstance(known, Number):
        raise ExpressionError("not a number")
    return known


def negated(number: Number) -> Number:
    """The number with the other sign; -0.0 for 0.0."""
    return Number(number.kind, -number.number)


def arithmetic(sign: str, left: str, right: str) -> str:
    """``+``, ``-``, ``*``, ``/`` of numbers: integers and decimals exact, float32 and double rounded once."""
    if all(_is_dated(item) for item in (left, right)):
        raise OpenError("arithmetic of dates, which 17.3.1 allows as an extension")
    return term(combined(sign, numeric(left), numeric(right)))


def _is_dated(cell: str) -> bool:
    return is_literal(cell) and split(cell)[1].removeprefix(XSD) in ("date", "dateTime", "time", "dayTimeDuration")


def combined(sign: str, left: Number, right: Number) -> Number:
    """Two numbers combined (XPath F&O 6.2)."""
    kind, one, other = promoted(left, right)
    if isinstance(one, Fraction) and isinstance(other, Fraction):
        if sign == "/":
            if other == 0:
                raise ExpressionError("division by zero")
            return Number("decimal", one / other)
        return Number(kind, {"+": one + other, "-": one - other, "*": one * other}[sign])
    return Number(kind, _rounded(kind, sign, float(one), float(other)))


def _rounded(kind: str, sign: str, one: float, other: float) -> float:
    try:
        number = {"+": lambda: one + other, "-": lambda: one - other, "*": lambda: one * other}.get(
            sign, lambda: _divided(one, other)
        )()
    except OverflowError:
        number = math.inf
    return float32(number) if kind == "float" else number


def _divided(one: float, other: float) -> float:
    if other != 0:
        return one / other
    if one == 0 or one != one:
        return math.nan
    return math.copysign(math.inf, one) * math.copysign(1, other)


def rounding(name: str, number: Number) -> Number:
    """ABS, CEIL, FLOOR, ROUND (17.4.4), of the argument's type; ROUND takes halves up."""
    exact = number.number
    if name == "ABS":
        return Number(number.kind, abs(exact))
    if isinstance(exact, float) and not math.isfinite(exact):
        return number
    steps: dict[str, Callable[[Fraction], int]] = {
        "CEIL": math.ceil,
        "FLOOR": math.floor,
        "ROUND": lambda item: math.floor(item + Fraction(1, 2)),
    }
    whole = steps[name](Fraction(exact))
    if isinstance(exact, float):
        return Number(number.kind, math.copysign(float(whole), exact) if whole == 0 else float(whole))
    return Number(number.kind, Fraction(whole))


def text_of(cell: str) -> tuple[str, str]:
    """The text and language of a string literal."""
    text, kind, language = split(cell)
    if not language and kind != STRING:
        raise ExpressionError("not a string")
    return text, language


def both(left: str, right: str) -> tuple[str, str, str]:
    """The texts of compatible arguments (17.4.3.1.2), and the first one's language."""
    (one, language), (other, second) = text_of(left), text_of(right)
    if second and second.lower() != language.lower():
        raise ExpressionError("incompatible strings")
    return one, other, language


def written(cell: str) -> str:
    """STR: the lexical form of a literal, the IRI itself."""
    if isinstance(cell, Computed):
        raise OpenError("the lexical form of a computed number")
    if is_literal(cell):
        return split(cell)[0]
    if is_iri(cell):
        return cell[1:-1]
    raise ExpressionError("STR of a blank node or triple term")


def substring(source: str, start: str, length: str | None = None) -> str:
    """SUBSTR: positions from 1, rounded as F&O 7.4.3 has it."""
    text, language = text_of(source)
    first = rounding("ROUND", numeric(start)).number
    last = math.inf if length is None else first + rounding("ROUND", numeric(length)).number
    return literal("".join(char for at, char in enumerate(text, 1) if first <= at < last), STRING, language)


def matcher(pattern: str, flags: str = "") -> re.Pattern[str]:
    """A regular expression; only what XPath and Python mean alike is used."""
    known = {"i": re.IGNORECASE, "s": re.DOTALL, "m": re.MULTILINE, "x": re.VERBOSE}
    if set(flags) - set(known):
        raise ExpressionError("unknown flag")
    try:
        return re.compile(pattern, sum(known[flag] for flag in flags))
    except re.error:
        raise ExpressionError("not a regular expression") from None


def regex(cell: str, pattern: str, flags: str = '""') -> str:
    """REGEX (17.4.3.14)."""
    return boolean(matcher(plain(pattern), plain(flags)).search(text_of(cell)[0]) is not None)


def replaced(cell: str, pattern: str, replacement: str, flags: str = '""') -> str:
    """REPLACE (17.4.3.15)."""
    text, language = text_of(cell)
    expression = matcher(plain(pattern), plain(flags))
    if expression.search(""):
        raise ExpressionError("REPLACE with a pattern that matches nothing")
    return literal(expression.sub(re.sub(r"\$(\d)", r"\\\1", plain(replacement)), text), STRING, language)


def plain(cell: str) -> str:
    """The text of a simple literal."""
    text, language = text_of(cell)
    if language:
        raise ExpressionError("a simple literal is needed")
    return text


def joined(*cells: str) -> str:
    """CONCAT: in the one language that all have, if they have (17.4.3.12)."""
    texts = [text_of(item) for item in cells]
    languages = {language for _, language in texts}
    return literal("".join(text for text, _ in texts), STRING, languages.pop() if len(languages) == 1 else "")


def before(left: str, right: str) -> str:
    """STRBEFORE (17.4.3.9): a simple literal where there is none."""
    one, other, language = both(left, right)
    return literal(one.partition(other)[0] if other else "", STRING, language) if other in one else '""'


def after(left: str, right: str) -> str:
    """STRAFTER (17.4.3.10)."""
    one, other, language = both(left, right)
    return literal(one.partition(other)[2] if other else one, STRING, language) if other in one else '""'


def matches(tag: str, span: str) -> str:
    """LANGMATCHES: basic filtering of RFC 4647."""
    one, other = plain(tag).lower(), plain(span).lower()
    return boolean(one != "" if other == "*" else one == other or one.startswith(other + "-"))


def date_part(name: str, cell: str) -> str:
    """YEAR to SECONDS of an xsd:dateTime, as they are written."""
    text, kind, _ = split(cell)
    if kind != XSD + "dateTime":
        raise ExpressionError("not an xsd:dateTime")
    parts, zone = fields(text, "dateTime")
    if name == "TZ":
        return literal(zone or "")
    if name == "TIMEZONE":
        return _duration(zone)
    if parts[6]:
        raise OpenError("the fields of 24:00:00")
    part = parts[("YEAR", "MONTH", "DAY", "HOURS", "MINUTES", "SECONDS").index(name)]
    assert part is not None
    return term(Number("decimal", Fraction(part))) if name == "SECONDS" else literal(str(int(part)), XSD + "integer")


def _duration(zone: str | None) -> str:
    if zone is None:
        raise ExpressionError("no time zone")
    hours, minutes = (0, 0) if zone == "Z" else (int(zone[1:3]), int(zone[4:6]))
    body = f"{hours}H" * bool(hours) + f"{minutes}M" * bool(minutes) or "0S"
    return literal(f"{'-' if zone[0] == '-' and body != '0S' else ''}PT{body}", XSD + "dayTimeDuration")


def cast(name: str, *cells: str) -> str:
    """The constructor functions of 17.5; those that no literal is known for are not done."""
    if len(cells) != 1 or name not in {"boolean", "double", "float", "decimal", "integer", "dateTime", "string"}:
        raise OpenError(f"the function {name} is not done")
    source = cells[0]
    if name == "string":
        return _as_string(source)
    text, kind, language = split(source)
    if language:
        raise ExpressionError("no cast from a language-tagged string")
    if kind == STRING:
        return _parsed(text.strip(" \t\n\r"), name)
    known = value(source)
    if name == "dateTime":
        if isinstance(known, Moment) and known.kind == "dateTime":
            return source
        raise ExpressionError("no cast")
    if isinstance(known, bool):
        return boolean(known) if name == "boolean" else term(_to(Number("integer", Fraction(known)), name))
    if not isinstance(known, Number):
        raise ExpressionError("no cast")
    if name == "boolean":
        return boolean(known.number == known.number and known.number != 0)
    return term(_to(known, name))


def _as_string(source: str) -> str:
    if source.startswith("_:") or is_triple(source):
        raise ExpressionError("no string of a blank node or triple term")
    if source.startswith("<"):
        return literal(source[1:-1])
    try:
        known = value(source)
    except ExpressionError:
        return literal(split(source)[0])
    if isinstance(known, Number):
        if isinstance(known.number, float) and math.isfinite(known.number) and not _short(known.number):
            raise OpenError("the digits of a floating number")
        return literal(lexical(known))
    if isinstance(known, bool):
        return literal("true" if known else "false")
    if isinstance(known, Moment):
        raise OpenError("the canonical form of a date")
    return literal(split(source)[0])


def _short(number: float) -> bool:
    """Whether F&O 17.1.2 writes the number without an exponent."""
    return number == 0 or 1e-6 <= abs(number) < 1e6


def _parsed(text: str, name: str) -> str:
    """A string as another type, where it is in its lexical space."""
    known = value(literal(text, XSD + name))
    if isinstance(known, Number):
        return term(known)
    return boolean(known) if isinstance(known, bool) else literal(text, XSD + name)


def _to(number: Number, name: str) -> Number:
    """A number as another numeric type (F&O 17.1.3)."""
    exact = number.number
    if name in ("float", "double"):
        if isinstance(exact, float):
            return Number(name, float32(exact) if name == "float" else exact)
        return Number(name, as_kind(number, name))
    if isinstance(exact, float) and not math.isfinite(exact):
        raise ExpressionError("no finite value")
    whole = Fraction(exact)
    return Number(name, Fraction(math.trunc(whole)) if name == "integer" else whole)


def checked_datatype(cell: str) -> str:
    """DATATYPE as an IRI."""
    return f"<{split(cell)[1]}>"


def _is_numeric(cell: str) -> bool:
    try:
        return isinstance(value(cell), Number)
    except ExpressionError:
        return False


def _iri(cell: str) -> str:
    return cell if is_iri(cell) else f"<{plain(cell)}>"


def _triple(subject: str, predicate: str, item: str) -> str:
    """TRIPLE (SPARQL 1.2, 17.4.7): what is not a triple is an error."""
    if isinstance(item, Computed):
        raise OpenError("the lexical form of a computed number")
    if is_literal(subject) or is_triple(subject) or not is_iri(predicate):
        raise ExpressionError("no triple")
    return f"<<( {subject} {predicate} {item} )>>"


def _strdt(text: str, kind: str) -> str:
    if not is_iri(kind):
        raise ExpressionError("STRDT needs an IRI")
    return literal(plain(text), kind[1:-1])


def _case(text: str, change: Callable[[str], str]) -> str:
    body, language = text_of(text)
    return literal(change(body), STRING, language)


def _hash(name: str) -> Callable[[str], str]:
    return lambda cell: literal(hashlib.new(name, plain(cell).encode()).hexdigest())


def _whole(number: int) -> str:
    return literal(str(number), XSD + "integer")


def _dated(name: str) -> Callable[[str], str]:
    return lambda cell: date_part(name, cell)


def _number_function(name: str) -> Callable[[str], str]:
    return lambda cell: term(rounding(name, numeric(cell)))


FUNCTIONS: dict[str, Callable[..., str]] = {
    "STR": lambda found: literal(written(found)),
    "LANG": lambda found: literal(split(found)[2].partition("--")[0]),
    "LANGMATCHES": matches,
    "DATATYPE": checked_datatype,
    "IRI": _iri,
    "URI": _iri,
    "ISIRI": lambda found: boolean(is_iri(found)),
    "ISTRIPLE": lambda found: boolean(is_triple(found)),
    "SUBJECT": lambda found: triple(found)[0],
    "PREDICATE": lambda found: triple(found)[1],
    "OBJECT": lambda found: triple(found)[2],
    "TRIPLE": _triple,
    "LANGDIR": lambda found: literal(split(found)[2].partition("--")[2]),
    "HASLANG": lambda found: boolean(is_literal(found) and bool(split(found)[2])),
    "HASLANGDIR": lambda found: boolean(is_literal(found) and "--" in split(found)[2]),
    "ISBLANK": lambda found: boolean(found.startswith("_:")),
    "ISLITERAL": lambda found: boolean(is_literal(found)),
    "ISNUMERIC": lambda found: boolean(is_literal(found) and _is_numeric(found)),
    "SAMETERM": lambda left, right: boolean(same(left, right)),
    "STRLEN": lambda found: _whole(len(text_of(found)[0])),
    "SUBSTR": substring,
    "UCASE": lambda found: _case(found, str.upper),
    "LCASE": lambda found: _case(found, str.lower),
    "STRSTARTS": lambda left, right: boolean(both(left, right)[0].startswith(both(left, right)[1])),
    "STRENDS": lambda left, right: boolean(both(left, right)[0].endswith(both(left, right)[1])),
    "CONTAINS": lambda left, right: boolean(both(left, right)[1] in both(left, right)[0]),
    "STRBEFORE": before,
    "STRAFTER": after,
    "CONCAT": joined,
    "REPLACE": replaced,
    "REGEX": regex,
    "ENCODE_FOR_URI": lambda found: literal(quote(text_of(found)[0], safe="-_.~")),
    "STRDT": _strdt,
    "STRLANG": lambda text, tag: literal(plain(text), STRING, plain(tag).lower()),
    **{name: _number_function(name) for name in ("ABS", "CEIL", "FLOOR", "ROUND")},
    **{name: _dated(name) for name in ("YEAR", "MONTH", "DAY", "HOURS", "MINUTES", "SECONDS", "TIMEZONE", "TZ")},
    **{name: _hash(name) for name in ("MD5", "SHA1", "SHA256", "SHA384", "SHA512")},
}
