"""Texts that SPARQL leaves open: concatenations, language tags, and the lexical forms of computed numbers."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import islice, permutations

from streamgauge.formats.canonical import parse_term
from streamgauge.model.terms import XSD, Term, datatype, quoted
from streamgauge.oracle.worlds.conditions import MAX_CASES, chosen, limit
from streamgauge.oracle.worlds.openings import OpenTerm, SentTexts, TextChoice
from streamgauge.sparql.values import DECIMAL, INTEGER, shortest, text_of


class TagCase(TextChoice):
    """LANG: a language tag in any case, because tags are read in lower case (RDF 1.1 Concepts, 3.3).

    An engine may keep the case in which a tag was written, which the recorded stream does not tell. Operators that read
    the tag read it as recorded or as BCP 47 writes it.
    """

    identified = True

    def __init__(self, tag: str) -> None:
        reason = f"the case of the language tag {tag} (RDF 1.1 Concepts, 3.3)"
        super().__init__([quoted(form) for form in _tag_forms(tag)], reason, shared=True)

    def allowed(self, term: Term | None) -> bool:
        """Whether the term is the tag in some case."""
        return term is not None and term.lower() == self.any_option

    def among(self, sent: "SentTexts") -> OpenTerm:
        """The forms that operators read, and the cases that were received."""
        texts = (term for terms in sent.values() for term in terms if self.allowed(term))
        return OpenTerm(tuple(dict.fromkeys((*self.options, *texts))), self.reason)


class Concatenation(TextChoice):
    """GROUP_CONCAT: strings joined in any order (18.5.1.7), without enumerating the orders unless they are few."""

    def __init__(self, strings: Sequence[str], separator: str) -> None:
        super().__init__(self._orders, "the order of GROUP_CONCAT (SPARQL 18.5.1.7)")
        self._strings, self._separator = strings, separator

    def _orders(self) -> list[Term]:
        orders = math.factorial(len(self._strings))
        for times in Counter(self._strings).values():
            orders //= math.factorial(times)
        # The distinct permutations are counted by the multinomial coefficient, before any of them is made.
        limit(orders, [chosen(self)])
        return list(dict.fromkeys(quoted(self._separator.join(order)) for order in _orders(self._strings)))

    def allowed(self, term: Term | None) -> bool:
        """Whether the term is the strings joined in some order."""
        if term is None or datatype(term) != XSD + "string":
            return False
        return joins(parse_term(term).value, self._strings, self._separator)

    def among(self, sent: "SentTexts") -> OpenTerm:
        """The legal texts among those received, and one other, which stands for all orders that were not received."""
        length = sum(map(len, self._strings)) + len(self._separator) * (len(self._strings) - 1)
        legal = [term for term in sent.get(length, ()) if self.allowed(term)]
        texts = (quoted(self._separator.join(order)) for order in islice(_orders(sorted(self._strings)), MAX_CASES))
        other = next((text for text in texts if text not in legal), None)
        return OpenTerm(legal if other is None else (*legal, other), self.reason)

    @property
    def any_option(self) -> Term:
        """The strings joined in the order of their rows."""
        return quoted(self._separator.join(self._strings))


def _orders(strings: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The distinct permutations of strings, some of which may be equal."""
    if len(set(strings)) == len(strings):
        yield from permutations(strings)
        return
    for first in dict.fromkeys(strings):
        rest = list(strings)
        rest.remove(first)
        yield from ((first, *others) for others in (_orders(rest) if rest else ((),)))


def joins(text: str, strings: Sequence[str], separator: str) -> bool:
    """Whether ``text`` is these strings joined by the separator in some order, each used once.

    A depth-first search from the left, longest string first, with memoised states (position, remaining counts): the
    strings "a", "ab" and the text "aba" with an empty separator need both attempts at position 0.
    """
    kinds = sorted(set(strings), key=len, reverse=True)
    counts = Counter(strings)
    # In every order the text has the same length.
    if len(text) != sum(map(len, strings)) + len(separator) * (len(strings) - 1):
        return False
    failed: set[tuple[int, ...]] = set()
    stack = [(0, tuple(counts[kind] for kind in kinds))]
    while stack:
        place, left = stack.pop()
        if (place, *left) in failed:
            continue
        failed.add((place, *left))
        # Reversed, because the stack pops the last first: the longest string is tried first.
        for index in reversed(range(len(kinds))):
            after = place + len(kinds[index])
            rest = (*left[:index], left[index] - 1, *left[index + 1 :])
            if left[index] and text.startswith(kinds[index], place):
                if not any(rest):
                    return True
                if text.startswith(separator, after):
                    stack.append((after + len(separator), rest))
    return False


def number_texts(kind: int, value: int | Decimal | float) -> list[str]:
    """The lexical forms that implementations give a computed number: plain, or as XML Schema and Java write it.

    1e6: 1000000, 1.0E6, 1.0e6, 1000000.0; the decimal 1: 1, 1.0.
    """
    plain = text_of(kind, value)
    if kind == DECIMAL:
        return [plain] if "." in plain else [plain, f"{plain}.0"]
    if kind == INTEGER or not math.isfinite(value):
        return [plain]
    digits = Decimal(shortest(float(value), kind)).as_tuple()
    assert isinstance(digits.exponent, int)
    figures = "".join(map(str, digits.digits)).rstrip("0") or "0"
    power = len(digits.digits) + digits.exponent - 1 if figures != "0" else 0
    scientific = f"{'-' * digits.sign}{figures[0]}.{figures[1:] or '0'}"
    pointed = plain if "." in plain else f"{plain}.0"
    return list(dict.fromkeys([plain, f"{scientific}E{power}", f"{scientific}e{power}", pointed]))


def _tag_forms(tag: str) -> tuple[str, ...]:
    """The forms of a language tag: in lower case, as terms have it (RDF 1.1 Concepts, 3.3), or by BCP 47 (2.1.1)."""
    first, *others = tag.split("-")
    cased = {2: str.upper, 4: str.capitalize}
    return tuple(dict.fromkeys((tag, "-".join([first, *(cased.get(len(x), str)(x) for x in others)]))))
