"""Answers that SPARQL leaves open: the legal values of a term, and the legal orders of tied rows.

A literal may hold all legal values of a term (``choice``, ``pieces``, ``beyond``):

    SAMPLE over 1, 2                        1 or 2
    GROUP_CONCAT over "a", "b c" by " "     "a b c" or "b c a"; not "a c b"
    2^63 - 1 + 1                            2^63, -2^63 or an error: integers and decimals of more than 18 digits need
                                            not be supported (F&O, 6.2; XSD, 5.4); xsd:long and its like are finite, so
                                            all of their values are supported

Of tied rows ``positions`` and ``legal`` say which ones LIMIT and OFFSET may keep. SPARQL (15.1) puts 5 before 6 and
does not order "x" beside either. The comparable keys of a tie form a chain; a chain keeps its order, and chains may be
merged in any way:

    ORDER BY ?v LIMIT 1              5 "x" 6     legal: 5, or "x"; not 6, which comes after 5
    ORDER BY ?v OFFSET 1 LIMIT 1     5 "x" 6     legal: each of the three ("x" 5 6, 5 "x" 6, 5 6 "x")
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final

import pyoxigraph as ox

from streamgauge.formats.canonical import Canonical, parse_term
from streamgauge.model import algebra as a
from streamgauge.model.terms import XSD, Row, Term, Triple, datatype
from streamgauge.oracle.judging.intervals import DIGITS, OpenError, read, representable
from streamgauge.query.traversal import every_expression, every_pattern, expressions
from streamgauge.sparql.comparison import order_key, ranks
from streamgauge.sparql.values import DECIMAL, FLOAT, INTEGER

REASON: Final = f"a number of more than {DIGITS} digits, which implementations need not support"
BEYOND: Final = "urn:streamgauge:beyond"
_WIDTHS: Final = range(61, 129)
"""Bits of signed integers that hold 18 digits, which implementations compute modulo 2^n."""
_UNBOUNDED: Final = frozenset(
    XSD + name for name in ("integer", "decimal", "positiveInteger", "negativeInteger", "nonPositiveInteger",
                            "nonNegativeInteger")
)  # fmt: skip


def supported(kind: int, term: Term) -> bool:
    """Whether every implementation has to support a literal of this kind."""
    number = read(term)
    if number is None or kind >= FLOAT or datatype(term) not in _UNBOUNDED:
        return True
    return abs(number.value) < 10**DIGITS if kind == INTEGER else representable(number.value, DECIMAL)


def refuse(term: Term) -> None:
    """OpenError for a literal that need not be supported; one of at most ``DIGITS`` characters has no more digits."""
    if term.rfind('"') <= DIGITS + 1:
        return
    number = read(term)
    if number is not None and number.exact and not supported(number.kind, term):
        raise OpenError(f"{term.partition('^^')[0]} is {REASON}")


def integer(term: Term) -> int | None:
    """An integer of any size, also one beyond what implementations need to support; ``None`` for any other term."""
    if is_beyond(term):
        return int(term[1 : term.rindex('"')])
    number = read(term)
    return int(number.value) if number is not None and number.kind == INTEGER else None


def beyond(value: int) -> Term:
    """The literal of an integer that need not be supported."""
    return f'"{value}"^^<{BEYOND}>'


def is_beyond(term: Term | None) -> bool:
    """Whether a term is such a literal."""
    return term is not None and term.endswith(f"^^<{BEYOND}>")


def is_limited(term: Term) -> bool:
    """Whether a number need not be supported: one beyond, or a stored one of more digits."""
    number = read(term)
    return is_beyond(term) or (number is not None and number.exact and not supported(number.kind, term))


def _allows_beyond(term: Term, actual: Term | None) -> bool:
    """Whether an implementation may give ``actual`` for an integer beyond: its value, that modulo 2^n, an error.

    F&O, 6.2, lets a result be modulo the largest integer; that is taken to be a signed one of 61 to 128 bits.
    """
    value, number = integer(term), read(actual or "")
    if actual is None or value is None or number is None:
        return actual is None
    return number.special is None and number.value in {value, *(_wrapped(value, bits) for bits in _WIDTHS)}


def _wrapped(value: int, bits: int) -> int:
    """Two's complement: 2^63 is -2^63 in 64 bits."""
    return (value + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))


class Operands:
    """The stored terms that a query's expressions read, as far as its triple patterns tell."""

    def __init__(self, form: a.QueryForm) -> None:
        used = set(_used(form.pattern))
        found = [
            triple.predicate
            for pattern in every_pattern(form.pattern)
            if isinstance(pattern, a.BGP)
            for triple in pattern.patterns
            if triple.object in used
        ]
        self._any = any(not isinstance(predicate, str) for predicate in found)
        self._predicates = frozenset(predicate for predicate in found if isinstance(predicate, str))

    def refuse(self, triples: Iterable[Triple]) -> None:
        """OpenError where one of the terms need not be supported."""
        if not self._any and not self._predicates:
            return
        for _subject, predicate, term in triples:
            if self._any or predicate in self._predicates:
                refuse(term)


def _used(pattern: a.Pattern) -> Iterator[a.Var]:
    """The variables that expressions, aggregates and keys read, not counting those of EXISTS patterns."""
    for each in every_pattern(pattern):
        for tree in expressions(each):
            yield from (part for part in every_expression(tree) if isinstance(part, a.Var))


Position = tuple[int, int]
"""A row's chain, and its level there: rows of a smaller level come first, those of one level in any order."""


def positions(terms: Sequence[Term | None], descending: bool) -> tuple[Position, ...]:
    """The position of each row by its key; empty where SPARQL orders none of the rows before another."""
    chains: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for index, term in enumerate(terms):
        chains[_chain(term)].append(index)
    found: list[Position] = [(0, 0)] * len(terms)
    for number, members in enumerate(chains.values()):
        for index, (level, _) in zip(members, ranks([terms[index] for index in members]), strict=True):
            found[index] = (number, -level if descending else level)
    return tuple(found) if len(set(found)) > len(chains) else ()


def _chain(term: Term | None) -> tuple[object, ...]:
    """Equal for terms that SPARQL may order: literals of one kind, NaN by itself, all that is no literal."""
    key = order_key(term)
    if term is None or term[0] != '"':
        return key[:1]
    return key[:3] if key[1] == INTEGER else key[:2]


def legal(kept: Counter[Row], rows: Sequence[Row], order: Sequence[Position], skipped: int) -> bool:
    """Whether some order of the rows skips ``skipped`` of them and then has exactly the rows ``kept``.

    Rows that stand in several positions, as their keys are no columns, are taken for legal.
    """
    place = dict(zip(rows, order, strict=True))
    if any(place[row] != own for row, own in zip(rows, order, strict=True)):
        return True
    totals: dict[int, Counter[int]] = defaultdict(Counter)
    taken: dict[int, Counter[int]] = defaultdict(Counter)
    for chain, level in order:
        totals[chain][level] += 1
    for row, times in kept.items():
        chain, level = place[row]
        taken[chain][level] += times
    ranges = [_before(totals[chain], taken[chain]) for chain in totals]
    if any(each is None for each in ranges):
        return False
    return sum(each[0] for each in ranges if each) <= skipped <= sum(each[1] for each in ranges if each)


def _before(total: Counter[int], taken: Counter[int]) -> tuple[int, int] | None:
    """How many rows of a chain come before its kept rows, at least and at most; ``None`` where these have a gap."""
    levels = sorted(level for level, times in taken.items() if times)
    if not levels:
        return 0, total.total()
    first, last = levels[0], levels[-1]
    if any(first < level < last and taken[level] < times for level, times in total.items()):
        return None
    before = sum(times for level, times in total.items() if level < first)
    spare = total[first] - taken[first]
    return (before, before + spare) if first == last else (before + spare, before + spare)


CHOICE: Final = "urn:streamgauge:choice"
PIECES: Final = "urn:streamgauge:pieces"
_CANONICAL: Final = Canonical()


def choice(terms: Iterable[Term]) -> Term:
    """Any one of these terms."""
    return str(ox.Literal(json.dumps(sorted(set(terms))), datatype=ox.NamedNode(CHOICE)))


def pieces(strings: Sequence[str], separator: str) -> Term:
    """These strings, joined in any order; a plain literal where every order gives the same."""
    if len(set(strings)) < 2:
        return str(ox.Literal(separator.join(strings)))
    return str(ox.Literal(json.dumps([separator, *sorted(strings)]), datatype=ox.NamedNode(PIECES)))


def is_open(term: Term | None) -> bool:
    """Whether a literal is a choice, or pieces in any order."""
    return term is not None and (term.endswith(f"<{CHOICE}>") or term.endswith(f"<{PIECES}>"))


def options(term: Term) -> tuple[Term, ...]:
    """The terms of a choice; the term itself for any other."""
    return _held(term) if term.endswith(f"<{CHOICE}>") else (term,)


def one_of(term: Term) -> Term:
    """A legal value: the least of a choice, the pieces in order."""
    if term.endswith(f"<{CHOICE}>"):
        return min(_held(term))
    separator, *strings = _held(term)
    return _CANONICAL.term(ox.Literal(separator.join(strings)))


def allows(term: Term, actual: Term | None) -> bool:
    """Whether a received term is one of the legal values of an open one."""
    if is_beyond(term):
        return _allows_beyond(term, actual)
    if actual is None:
        return False
    if term.endswith(f"<{CHOICE}>"):
        return actual in options(term)
    if datatype(actual) != XSD + "string":
        return False
    separator, *strings = _held(term)
    return joins(parse_term(actual).value, strings, separator)


@lru_cache(maxsize=4096)
def _held(term: Term) -> tuple[str, ...]:
    return tuple(json.loads(parse_term(term).value))


def joins(text: str, strings: Sequence[str], separator: str) -> bool:
    """Whether ``text`` is these strings in some order with the separator between them, each used once.

    The text is consumed from the left, longest string first; states that failed are not tried again.
    """
    kinds = sorted(set(strings), key=len, reverse=True)
    counts = Counter(strings)
    if len(text) != sum(map(len, strings)) + len(separator) * (len(strings) - 1):
        return False
    failed: set[tuple[int, ...]] = set()
    stack = [(0, tuple(counts[kind] for kind in kinds))]
    while stack:
        place, left = stack.pop()
        if (place, *left) in failed:
            continue
        failed.add((place, *left))
        for index in reversed(range(len(kinds))):
            after = place + len(kinds[index])
            rest = (*left[:index], left[index] - 1, *left[index + 1 :])
            if left[index] and text.startswith(kinds[index], place):
                if not any(rest):
                    return True
                if text.startswith(separator, after):
                    stack.append((after + len(separator), rest))
    return False
