"""The choices met while one content is evaluated, and the open terms that depend on them.

An open term is a placeholder in a row, a literal with a datatype that no data has, and is decided only when an operator
reads it. An expression is run once for each combination of decisions that it meets, and each run adds its conditions:

    FILTER(?x > 50), ?x in [49.9, 50.1]     true under x > 50, false under x <= 50
    STR(SAMPLE(?v)) over "a", "b"           "a" under v = "a", "b" under v = "b"
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from itertools import compress, count, islice
from math import isfinite
from operator import not_
from typing import Any, Final, TypeAlias, TypeVar

from streamgauge.formats.canonical import parse_term
from streamgauge.model.terms import XSD, Row, Term, datatype
from streamgauge.oracle.worlds.conditions import (
    ALWAYS,
    Condition,
    NumberOrder,
    NumberSpan,
    OpenChoice,
    OpenNumber,
    Variable,
    both,
    chosen,
    limit,
)
from streamgauge.oracle.worlds.intervals import (
    ARITHMETIC,
    DIGITS,
    Interval,
    OpenError,
    Sign,
    inexact,
    own,
    read,
    representable,
)
from streamgauge.sparql.values import DECIMAL, FLOAT, INTEGER, INTEGER_RANGES

Result = TypeVar("Result")
Alternatives: TypeAlias = list[tuple[Any, Condition]]
"""The results of a decision, each with its condition; no two conditions hold together."""

TermSpan: TypeAlias = tuple[bool, Any, Any]
"""Whether a term is a number, and the ends of its interval; any other term is a point, its text in lower case."""

OPEN: Final = "urn:streamgauge:open"
LIMITED: Final = f"a number of more than {DIGITS} digits, which implementations need not support"
_WIDTHS: Final = range(61, 129)
"""Widths in bits of signed integers that fit 18 digits; implementations may compute modulo 2^n (F&O, 6.2)."""
_UNBOUNDED: Final = {XSD + name for name, bounds in INTEGER_RANGES.items() if not all(map(isfinite, bounds))} | {
    XSD + "decimal"
}


SentTexts: TypeAlias = Mapping[int, Sequence[Term]]
"""The strings that a run received, by their length."""


def sent_texts(rows: Iterable[Row]) -> SentTexts:
    """The plain string literals in some rows, by length; malformed terms, which engines may send, are left out."""
    texts: dict[int, dict[Term, None]] = {}
    for term in {term for row in rows for term in row if term is not None and term[:1] == term[-1:] == '"'}:
        with suppress(ValueError):
            texts.setdefault(len(parse_term(term).value), {})[term] = None
    return {length: sorted(terms) for length, terms in texts.items()}


class OpenTerm(OpenChoice):
    """A choice among several legal terms; the option ``None`` stands for an error."""

    identified = False
    """Whether open terms with different choices of this kind are different terms."""

    @property
    def may_fail(self) -> bool:
        """Whether an error is one of the options."""
        return None in self.options

    def among(self, _sent: "SentTexts") -> "OpenTerm":
        """An equivalent choice that is small enough to be enumerated."""
        return self

    @property
    def any_option(self) -> Term | None:
        """One of the options."""
        option = self.options[0]
        assert option is None or isinstance(option, str)
        return option


class TextChoice(OpenTerm, ABC):
    """A choice among texts that are recognised without being enumerated."""

    may_fail = False

    @abstractmethod
    def allowed(self, term: Term | None) -> bool:
        """Whether the term is one of the legal texts."""


class Openings:
    """The open terms of one content; ``lenient`` also opens what implementations need not support.

    ``lenience`` is the reason, if the evaluation met something that is open only under leniency.
    """

    def __init__(self, *, lenient: bool = False) -> None:
        self.lenient, self.lenience = lenient, ""
        self.condition = ALWAYS
        self._numbers: dict[Term, OpenNumber] = {}
        self._terms: dict[Term, OpenTerm] = {}
        self._names = (f'"{number}"^^<{OPEN}>' for number in count())
        self._known: dict[Hashable, Any] = {}
        self._script: list[tuple[Alternatives, int]] | None = None
        self._place = 0

    @property
    def any(self) -> bool:
        """Whether any term is open."""
        return bool(self._numbers or self._terms)

    def named(self, name: Hashable, make: Callable[[], Result]) -> Result:
        """The object of this name, created on the first call: parts of a query that meet one decision share it."""
        if name not in self._known:
            self._known[name] = make()
        known: Result = self._known[name]
        return known

    def is_lenient(self, reason: str) -> bool:
        """Whether to open something that SPARQL does not leave open; the reason is recorded either way."""
        self.lenience = reason
        return self.lenient

    # Decisions
    def choose(self, alternatives: Callable[[], Alternatives]) -> Any:
        """One of the results; ``outcomes`` reruns the caller until each possible one was returned.

        Decisions are replayed from the script up to the last one, which advances to its next alternative.
        """
        assert self._script is not None
        if self._place == len(self._script):
            possible = [
                (result, whole)
                for result, condition in alternatives()
                if (whole := both(self.condition, condition)) is not None
            ]
            assert possible, "a decision has an alternative under every condition"
            self._script.append((possible, 0))
        possible, at = self._script[self._place]
        self._place += 1
        result, self.condition = possible[at]
        return result

    def forget(self) -> None:
        """Drop the last decision, which has a single option that the caller knows from now on.

        A decision that is met in one run and not in the next would shift all later ones of the script.
        """
        assert self._script is not None
        self._script.pop()
        self._place -= 1

    def outcomes(self, run: Callable[[], Result], condition: Condition = ALWAYS) -> list[tuple[Result, Condition]]:
        """The results of ``run`` under all combinations of the decisions that it meets, with their conditions.

        Depth-first, by rerunning: ``run`` must meet the same decisions in the same order for the same answers.

        Worked example: a run that chooses x in {1, 2} and, only for 2, y in {3, 4} is run three times, with the scripts
        (1), (2, 3) and (2, 4).
        """
        # Runs nest: an expression may evaluate EXISTS, whose pattern has expressions of its own.
        before = self._script, self._place, self.condition
        self._script, self._place, self.condition = [], 0, condition
        try:
            results = [(run(), self.condition)]
            while self._script:
                alternatives, at = self._script[-1]
                if at + 1 == len(alternatives):
                    self._script.pop()
                    continue
                self._script[-1] = alternatives, at + 1
                self._place, self.condition = 0, condition
                results.append((run(), self.condition))
                limit(len(results), (condition for _, condition in results))
            return results
        finally:
            self._script, self._place, self.condition = before

    # Terms
    def number(self, interval: Interval, name: Hashable = None) -> Term:
        """The literal of a computed number, open unless it is exact; calls with one ``name`` share one open number."""
        if interval.exact:  # as infinities and NaN are
            return self._exact(interval)
        if name is not None:
            return self.named(name, lambda: self._add(OpenNumber(interval, ARITHMETIC, shared=True)))
        return self._add(OpenNumber(interval, ARITHMETIC))

    def _exact(self, interval: Interval) -> Term:
        if interval.kind == INTEGER and interval.size >= 10**DIGITS:
            return self.beyond(int(interval.value))
        return own(interval)

    def _add(self, number: OpenNumber) -> Term:
        term = next(self._names)
        self._numbers[term] = number
        return term

    def term(self, choice: OpenTerm) -> Term:
        """A new open literal for a choice."""
        term = next(self._names)
        self._terms[term] = choice
        return term

    def beyond(self, value: int) -> Term:
        """An integer that need not be supported: its value; under leniency also modulo 2^n, or an error (F&O, 6.2)."""
        plain = f'"{value}"^^<{XSD}integer>'
        if not self.is_lenient(LIMITED):
            return plain
        # Two's complement: shifted to 0 and up, reduced, and shifted back.
        wrapped = {(value + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1)) for bits in _WIDTHS}
        options = (plain, *(f'"{number}"^^<{XSD}integer>' for number in sorted(wrapped - {value})), None)
        return self.named(("beyond", value), lambda: self.term(OpenTerm(options, LIMITED, shared=True)))

    def open_number(self, term: Term | None) -> OpenNumber | None:
        """The number of an open literal, else ``None``."""
        return None if term is None else self._numbers.get(term)

    def open_term(self, term: Term | None) -> OpenTerm | None:
        """The choice of an open literal, else ``None``."""
        return None if term is None else self._terms.get(term)

    def variable(self, term: Hashable) -> Variable | None:
        """The number or choice of an open literal, else ``None``."""
        return (self._numbers.get(term) or self._terms.get(term)) if isinstance(term, str) else None

    def is_open(self, term: Term | None) -> bool:
        """Whether a term is an open literal."""
        return term is not None and (term in self._numbers or term in self._terms)

    def decided(self, term: Term) -> Term | None:
        """The term itself, or one option of an open term (``choose``)."""
        choice = self._terms.get(term)
        if choice is None:
            return term
        taken: Term | None = self.choose(lambda: [(option, chosen(choice, option)) for option in choice.options])
        return taken

    def identified(self, term: Term) -> Term | None:
        """A term to be compared with others by identity: ``refuse_alike`` tells whether open ones may be equal."""
        choice = self._terms.get(term)
        return term if choice is not None and choice.identified else self.decided(term)

    def refuse_alike(self, rows: Sequence[Sequence[Term | None]], sentence: str) -> None:
        """Raise OpenError if two of these different rows may be equal, because their open terms may be."""
        if not self.any or not rows:
            return
        is_open = [any(self.is_open(row[at]) for row in rows) for at in range(len(rows[0]))]
        if not any(is_open):
            return
        # Rows that differ in a column without open terms are different.
        alike: dict[tuple[Term | None, ...], list[Sequence[Term | None]]] = {}
        for row in rows:
            alike.setdefault(tuple(compress(row, map(not_, is_open))), []).append(tuple(compress(row, is_open)))
        if any(len(others) > 1 and self._may_be_alike(others) for others in alike.values()):
            raise inexact(sentence)

    def _may_be_alike(self, rows: Iterable[Sequence[Term | None]]) -> bool:
        """Whether two rows may be equal: a sweep over the intervals of their first terms, which have to touch."""
        # By the first terms only: rows themselves may have terms and None, which do not compare.
        spans = sorted(((list(map(self._span, row)), row) for row in rows), key=lambda pair: pair[0][0])
        for place, (mine, row) in enumerate(spans):
            for others, other in islice(spans, place + 1, None):
                # Sorted by their low ends: no later one reaches back to this row.
                if not _touch(mine[0], others[0]):
                    break
                differing = (pair for pair in zip(row, other, strict=True) if pair[0] != pair[1])
                if all(map(_touch, mine, others)) and all(any(map(self.is_open, pair)) for pair in differing):
                    return True
        return False

    def _span(self, term: Term | None) -> TermSpan:
        number, choice = self.open_number(term), self.open_term(term)
        known = number.interval if number is not None else None if term is None else read(term)
        if known is not None and known.special is None:
            return True, known.low, known.high
        text = ((term if choice is None else choice.any_option) or "").lower()
        return False, text, text

    def interval(self, term: Term) -> Interval | None:
        """The interval of a number under the current condition; ``None`` for a term that is not a number."""
        number = self._numbers.get(term)
        if number is None:
            literal = read(term)
            if literal is not None and literal.exact and not is_supported(literal.kind, term):
                self._refuse(term)
            return literal
        span = self.condition.get(number)
        if not isinstance(span, NumberSpan):
            return number.interval
        known = number.interval
        return Interval(known.kind, span.low, span.high, min(max(known.value, span.low), span.high))

    def _refuse(self, term: Term) -> None:
        if self.is_lenient(LIMITED):
            raise OpenError(f"{term.partition('^^')[0]} is {LIMITED}")

    # Comparisons
    def compared(self, holds: Callable[[Sign], bool], left: Term, right: Term) -> bool:
        """Whether a comparison of two numbers holds (``HOLDS``); a decision, as at least one is open."""
        first, second = self._as_open(left), self._as_open(right)
        if isinstance(first, OpenNumber) and isinstance(second, OpenNumber):
            return self._ordered(holds, first, second)
        if isinstance(first, OpenNumber):
            assert not isinstance(second, OpenNumber)
            return self._beside(holds, first, second)
        assert isinstance(second, OpenNumber)
        # Turned round; ``and`` leaves the sign of NaN, which is None.
        return self._beside(lambda sign: holds(sign and -sign), second, first)

    def _as_open(self, term: Term) -> OpenNumber | Interval:
        number = self._numbers.get(term)
        if number is not None:
            return number
        literal = read(term)
        assert literal is not None
        if literal.exact:
            return literal
        return self.named(("literal", term), lambda: OpenNumber(literal, ARITHMETIC, shared=True))

    def _beside(self, holds: Callable[[Sign], bool], number: OpenNumber, other: Interval) -> bool:
        # A number: of an infinity and of NaN the intervals decide (``signs``).
        at = other.value
        parts = {
            -1: NumberSpan(number.span.low, at, high_open=True),
            0: NumberSpan(at, at),
            1: NumberSpan(at, number.span.high, low_open=True),
        }

        def alternatives() -> Alternatives:
            pieces = [(sign, span.within(number.span)) for sign, span in parts.items()]
            return [(sign, {number: span}) for sign, span in pieces if not span.empty]

        return holds(self.choose(lambda: _merged(alternatives(), holds, number)))

    def _ordered(self, holds: Callable[[Sign], bool], left: OpenNumber, right: OpenNumber) -> bool:
        if left is right:
            return holds(0)
        # One NumberOrder per pair, whichever side was met first, so that x < y and y > x are one decision.
        turned = -1 if ("order", right, left) in self._known else 1
        pair = (left, right) if turned > 0 else (right, left)
        comparison = self.named(("order", *pair), lambda: NumberOrder(*pair))
        true = frozenset(turned * sign for sign in (-1, 0, 1) if holds(sign))
        sides = [(True, true), (False, frozenset({-1, 0, 1}) - true)]
        answer: bool = self.choose(lambda: [(truth, {comparison: signs}) for truth, signs in sides if signs])
        return answer


def _merged(alternatives: Alternatives, holds: Callable[[Sign], bool], number: OpenNumber) -> Alternatives:
    """The parts of a span, with neighbours of equal outcome merged, so that there are as few cases as possible."""
    pieces: list[tuple[int, NumberSpan]] = []
    for sign, condition in alternatives:
        span = condition[number]
        assert isinstance(span, NumberSpan)
        if pieces and holds(pieces[-1][0]) is holds(sign):
            # Closed at both ends: each outer end is the other's value or one of the number's own.
            pieces[-1] = sign, NumberSpan(pieces[-1][1].low, span.high)
        else:
            pieces.append((sign, span))
    return [(sign, {number: span}) for sign, span in pieces]


def _touch(one: TermSpan, other: TermSpan) -> bool:
    return one[0] is other[0] and bool(one[1] <= other[2] and other[1] <= one[2])


CURRENT: Final[ContextVar[Openings]] = ContextVar("openings")


def is_plain(term: Term) -> bool:
    """Whether a stored term never involves a choice: it has no language tag, and every implementation supports it."""
    if term[0] != '"':
        return True
    return term[-1] in '">' and (
        term.rfind('"') <= DIGITS + 1 or (number := read(term)) is None or is_supported(number.kind, term)
    )


def is_supported(kind: int, term: Term) -> bool:
    """Whether every implementation has to support a number literal of this kind."""
    if term.rfind('"') <= DIGITS + 1 or kind >= FLOAT or datatype(term) not in _UNBOUNDED:
        return True
    number = read(term)
    assert number is not None
    return abs(number.value) < 10**DIGITS if kind == INTEGER else representable(number.value, DECIMAL)
