"""Every answer that some assignment of all choices gives, one world after the other: short, slow and by itself.

Nothing here is of ``sparql/`` or ``oracle/``: a query's algebra is evaluated over a handful of triples by nested loops.
Each decision is made when it is met (``Worlds.choose``); the next world makes the last decision that has another option
differently. Inexact numbers are decided too: any of some points around the true value, among them each bound of the
query and each number received, a little less and a little more.
"""

import struct
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations, pairwise, permutations
from math import ceil
from typing import Any

from streamgauge.model import algebra as a

XSD = "http://www.w3.org/2001/XMLSchema#"
TRUE, FALSE = f'"true"^^<{XSD}boolean>', f'"false"^^<{XSD}boolean>'
Number = tuple[str, Fraction]
"""A computed number; stored ones are terms."""
Solution = dict[str, Any]
MAX_ORDERED = 6
"""How many rows, or strings, are put into every order."""
LITTLE = Fraction(1, 10**9)
REACH = Fraction(4, 10**4)
"""How far from 50 an average of floats certainly may be; the drawn numbers are nearer, or much further away."""


class TooManyError(Exception):
    """More worlds than a test should try."""


class Worlds:
    """All worlds of one query over some triples."""

    def __init__(self, form: a.QueryForm, triples: Sequence[tuple[str, str, str]], points: Sequence[Fraction]) -> None:
        self.form, self.triples, self.points = form, triples, points
        self.script: list[list[int]] = []
        self.place = 0
        self.known: dict[Any, Any] = {}

    def bags(self, most: int) -> Iterator[Counter[tuple[Any, ...]]]:
        """The answer of each world."""
        for _ in range(most):
            self.place, self.known = 0, {}
            yield Counter(self.answer())
            while self.script and self.script[-1][0] + 1 == self.script[-1][1]:
                self.script.pop()
            if not self.script:
                return
            self.script[-1][0] += 1
        raise TooManyError

    def choose(self, options: Sequence[Any], name: Any = None) -> Any:
        """One of the options; the same one for a name."""
        if name is not None and name in self.known:
            return self.known[name]
        if self.place == len(self.script):
            self.script.append([0, len(options)])
        option = options[self.script[self.place][0]]
        self.place += 1
        if name is not None:
            self.known[name] = option
        return option

    def answer(self) -> list[tuple[Any, ...]]:
        rows = self.rows(self.form.pattern, {})
        if isinstance(self.form, a.Ask):
            return [(TRUE if rows else FALSE,)]
        assert isinstance(self.form, a.Select)
        return [tuple(row.get(name) for name in self.form.variables) for row in rows]

    # Patterns
    def rows(self, pattern: a.Pattern, fixed: Solution) -> list[Solution]:
        match pattern:
            case a.BGP(patterns=patterns):
                return self.matches(patterns, fixed)
            case a.Join(left=left, right=right):
                others = self.rows(right, fixed), self.rows(left, fixed)
                return [{**one, **two} for one in others[1] for two in others[0] if agree(one, two)]
            case a.Union(left=left, right=right):
                return self.rows(left, fixed) + self.rows(right, fixed)
            case a.Minus(left=left, right=right):
                others = self.rows(right, fixed)
                return [
                    one
                    for one in self.rows(left, fixed)
                    if not any(agree(one, two) and one.keys() & two.keys() for two in others)
                ]
            case a.LeftJoin(left=left, right=right, condition=condition):
                others = self.rows(right, fixed)
                results = []
                for one in self.rows(left, fixed):
                    merged = [{**one, **two} for two in others if agree(one, two)]
                    kept = [row for row in merged if condition is None or self.holds(condition, row, fixed)]
                    results += kept or [one]
                return results
            case a.Filter(condition=condition, pattern=inner):
                return [row for row in self.rows(inner, fixed) if self.holds(condition, row, fixed)]
            case a.Extend(pattern=inner, variable=variable, expression=tree):
                return [bound(row, variable.name, self.value(tree, row, fixed)) for row in self.rows(inner, fixed)]
            case a.Values(variables=variables, rows=rows):
                return [
                    {variable.name: term for variable, term in zip(variables, row, strict=True) if term is not None}
                    for row in rows
                ]
            case a.Group():
                return self.groups(pattern, fixed)
            case _:
                return self.modified(pattern, fixed)

    def modified(self, pattern: Any, fixed: Solution) -> list[Solution]:
        """Solution modifiers."""
        match pattern:
            case a.Project(pattern=inner, variables=variables):
                names = [variable.name for variable in variables]
                seen = {name: term for name, term in fixed.items() if name in names}
                return [{name: row[name] for name in names if name in row} for row in self.rows(inner, seen)]
            case a.Distinct(pattern=inner):
                return list({frozenset(row.items()): row for row in self.rows(inner, fixed)}.values())
            case a.Reduced(pattern=inner):
                kept = []
                for row, times in Counter(frozenset(row.items()) for row in self.rows(inner, fixed)).items():
                    kept += [dict(row)] * self.choose(range(1, times + 1))
                return kept
            case a.OrderBy(pattern=inner):
                return self.rows(inner, fixed)
            case a.Slice():
                return self.slice(pattern, fixed)
        raise ValueError(f"{type(pattern).__name__} is not a pattern of the drawn queries: evaluate it here first")

    def matches(self, patterns: Sequence[a.TriplePattern], fixed: Solution) -> list[Solution]:
        results: list[Solution] = [{}]
        for pattern in patterns:
            nodes = (pattern.subject, pattern.predicate, pattern.object)
            results = [
                more
                for row in results
                for triple in self.triples
                if (more := matched(row, nodes, triple, fixed)) is not None
            ]
        return results

    def slice(self, pattern: a.Slice, fixed: Solution) -> list[Solution]:
        """LIMIT and OFFSET of rows in any order that ORDER BY allows."""
        inner: Any = pattern.pattern
        project = inner if isinstance(inner, a.Project) else None
        below = project.pattern if project else inner
        keys = below.keys if isinstance(below, a.OrderBy) else ()
        rows = self.rows(below, fixed)
        columns = [[self.value(key, row, fixed) for key, _ in keys] for row in rows]
        directions = [down for _, down in keys]
        everything = range(len(rows))
        if len(rows) > MAX_ORDERED:
            raise TooManyError

        def legal(order: Sequence[int]) -> bool:
            return not any(before(columns[two], columns[one], directions) for one, two in combinations(order, 2))

        end = None if pattern.limit is None else pattern.offset + pattern.limit
        slices = {frozenset(order[pattern.offset : end]) for order in permutations(everything) if legal(order)}
        kept = self.choose(sorted(map(sorted, slices)))
        names = None if project is None else {variable.name for variable in project.variables}
        return [{name: rows[at][name] for name in rows[at] if names is None or name in names} for at in kept]

    def groups(self, group: a.Group, fixed: Solution) -> list[Solution]:
        groups: dict[tuple[Any, ...], list[Solution]] = {} if group.keys else {(): []}
        for row in self.rows(group.pattern, fixed):
            groups.setdefault(tuple(self.value(key, row, fixed) for _, key in group.keys), []).append(row)
        results = []
        for key, rows in groups.items():
            solution = {entry.name: term for (entry, _), term in zip(group.keys, key, strict=True) if term is not None}
            for variable, entry in group.aggregates:
                values = [True if entry.argument is None else self.value(entry.argument, row, fixed) for row in rows]
                solution = bound(solution, variable.name, self.aggregate(entry, values))
            results.append(solution)
        return results

    def aggregate(self, item: a.Aggregate, values: list[Any]) -> Any:
        values = list(dict.fromkeys(values)) if item.distinct else values
        present = [value for value in values if value is not None]
        match item.function:
            case "COUNT":
                return integer(len(present))
            case "SAMPLE":
                return self.choose(list(dict.fromkeys(values))) if values else None
            case "GROUP_CONCAT":
                texts = [string(value) for value in values]
                if None in texts:
                    return None
                if len(texts) > MAX_ORDERED:
                    raise TooManyError
                return self.choose(
                    sorted({f'"{item.separator.join(order)}"' for order in permutations(map(str, texts))})
                )
            case "MIN" | "MAX":
                sign = -1 if item.function == "MIN" else 1
                if not present or (None in values and (sign < 0 or self.choose([True, False]))):
                    return None
                least = [one for one in dict.fromkeys(present) if not any(order(two, one) == sign for two in present)]
                return self.choose(least)
        numbers = [number(value) for value in values]
        if None in numbers:
            return None
        total = sum((number for number in numbers if number is not None), Fraction(0))
        if any(str(value).endswith("#float>") for value in values):
            return self.inexact(total / (len(numbers) if item.function == "AVG" else 1), values)
        return "number", total / (len(numbers) if item.function == "AVG" and numbers else 1)

    def inexact(self, value: Fraction, values: Sequence[str]) -> Number:
        if len(values) == 1 or all(is_single(value) for value in values):
            return "number", value
        near = [point for point in self.points if abs(point - value) <= REACH]
        around = sorted({value, *near, *(point + side * LITTLE for point in near for side in (-1, 1))})
        between = [(one + two) / 2 for one, two in pairwise(around) if two - one > 4 * LITTLE]
        return "number", self.choose([*around, *between])

    # Expressions
    def holds(self, tree: a.Expression, row: Solution, fixed: Solution) -> bool:
        return truth(self.value(tree, row, fixed)) is True

    def value(self, tree: a.Expression, row: Solution, fixed: Solution) -> Any:
        match tree:
            case a.Var(name=name):
                return row.get(name, fixed.get(name))
            case a.Exists(pattern=pattern):
                inside = self.rows(pattern, {**fixed, **row})
                return TRUE if inside else FALSE
            case a.Call(operator=operator, arguments=arguments):
                return self.call(operator.upper(), arguments, lambda item: self.value(item, row, fixed))
            case _:
                return tree

    def call(self, name: str, arguments: Sequence[a.Expression], value: Callable[[a.Expression], Any]) -> Any:
        if name == "BOUND":
            return boolean(value(arguments[0]) is not None)
        if name in ("&&", "||"):
            sides = [truth(value(argument)) for argument in arguments]
            deciding = name == "||"
            return boolean(deciding) if deciding in sides else None if None in sides else boolean(not deciding)
        if name == "IF":
            test = truth(value(arguments[0]))
            return None if test is None else value(arguments[1] if test else arguments[2])
        values = [value(argument) for argument in arguments]
        if None in values:
            return None
        if name == "!":
            test = truth(values[0])
            return None if test is None else boolean(not test)
        if name == "STR":
            return self.text(values[0])
        if name == "LANG":
            return self.lang(values[0])
        if name == "STRLEN":
            text = string(values[0])
            return None if text is None else integer(len(text))
        if name == "CEIL":
            whole = number(values[0])
            return None if whole is None else ("number", Fraction(ceil(whole)))
        if name == "+":
            numbers = [number(value) for value in values]
            return None if None in numbers else ("number", sum(numbers))  # type: ignore[arg-type]
        return self.compared(name, *values)

    def text(self, value: Any) -> str | None:
        if isinstance(value, tuple):
            plain = f"{value[1].numerator}"
            assert value[1].denominator == 1
            return f'"{self.choose([plain, plain + ".0"], ("text", value))}"'
        return f'"{value[1 : value.rindex(chr(34))]}"' if value[0] == '"' else f'"{value[1:-1]}"'

    def lang(self, value: Any) -> str | None:
        if isinstance(value, tuple) or value[0] != '"':
            return None
        tag = value.rpartition("@")[2] if value[-1] not in '">' else ""
        country = tag.partition("-")[2]
        return f'"{self.choose([tag, tag.removesuffix(country) + country.upper()], ("tag", tag)) if country else tag}"'

    def compared(self, name: str, one: Any, two: Any) -> str | None:
        if name in ("=", "!="):
            same = self.equal(one, two)
            return None if same is None else boolean(same is (name == "="))
        sign = None
        if (number(one) is not None and number(two) is not None) or (is_string(one) and is_string(two)):
            sign = order(one, two)
        if sign is None:
            return None
        return boolean({"<": sign < 0, ">": sign > 0, "<=": sign <= 0, ">=": sign >= 0}[name])

    def equal(self, one: Any, two: Any) -> bool | None:
        if number(one) is not None and number(two) is not None:
            return number(one) == number(two)
        if one == two:
            return True
        kinds = {is_tagged(one), is_tagged(two)}, {is_unknown(one), is_unknown(two)}
        if kinds == ({True, False}, {True, False}) and not (is_tagged(one) and is_unknown(one)):
            return self.choose([None, False], frozenset((one, two)))
        if is_unknown(one) or is_unknown(two):
            return None
        # RDFterm-equal (SPARQL 1.1, 17.4.1.7) is an error for different literals outside the table of 17.3; SPARQL 1.2
        # and many engines compare them. An engine does one or the other.
        if is_literal(one) and is_literal(two) and not (is_string(one) and is_string(two)):
            return self.choose([False, None], "17.4.1.7")
        return False


def matched(row: Solution, nodes: Sequence[Any], triple: tuple[str, str, str], fixed: Solution) -> Solution | None:
    more = dict(row)
    for node, term in zip(nodes, triple, strict=True):
        if not isinstance(node, a.Var):
            if node != term:
                return None
        elif node.name in fixed:
            if fixed[node.name] != term:
                return None
        elif more.setdefault(node.name, term) != term:
            return None
    return more


def agree(one: Solution, two: Solution) -> bool:
    return all(one[name] == two[name] for name in one.keys() & two.keys())


def bound(row: Solution, name: str, value: Any) -> Solution:
    return row if value is None else {**row, name: value}


def boolean(value: bool) -> str:
    return TRUE if value else FALSE


def integer(value: int) -> str:
    return f'"{value}"^^<{XSD}integer>'


def number(value: Any) -> Fraction | None:
    if isinstance(value, tuple):
        return Fraction(value[1])
    if not isinstance(value, str) or not value.endswith(("#integer>", "#decimal>", "#float>", "#double>")):
        return None
    return Fraction(value[1 : value.rindex('"')])


def is_single(term: str) -> bool:
    """Whether 32 bits hold the number exactly."""
    exact = number(term)
    assert exact is not None
    return Fraction(struct.unpack("f", struct.pack("f", float(exact)))[0]) == exact


def is_string(value: Any) -> bool:
    return isinstance(value, str) and value[0] == '"' == value[-1]


def is_literal(value: Any) -> bool:
    return isinstance(value, tuple) or (isinstance(value, str) and value[0] == '"')


def is_tagged(value: Any) -> bool:
    return isinstance(value, str) and value[0] == '"' and value[-1] not in '">'


def is_unknown(value: Any) -> bool:
    return isinstance(value, str) and value[0] == '"' and value[-1] == ">" and XSD not in value


def string(value: Any) -> str | None:
    return value[1 : value.rindex('"')] if is_string(value) or is_tagged(value) else None


def truth(value: Any) -> bool | None:
    if value is None:
        return None
    if value in (TRUE, FALSE):
        return bool(value == TRUE)
    if number(value) is not None:
        return number(value) != 0
    text = string(value)
    return None if text is None else bool(text)


def order(one: Any, two: Any) -> int | None:
    """-1, 0 or 1 as ORDER BY has it; ``None`` where SPARQL does not order."""
    if one == two:
        return 0
    if one is None or two is None:
        return -1 if one is None else 1
    numbers = number(one), number(two)
    if numbers[0] is not None and numbers[1] is not None:
        return (numbers[0] > numbers[1]) - (numbers[0] < numbers[1])
    places = [4 if isinstance(entry, tuple) or entry[0] == '"' else 2 for entry in (one, two)]
    if places[0] != places[1]:
        return -1 if places[0] < places[1] else 1
    if places[0] == 2 or (is_string(one) and is_string(two)):
        return -1 if one[1:-1] < two[1:-1] else 1
    return None


def before(one: Sequence[Any], two: Sequence[Any], directions: Sequence[bool]) -> bool:
    """Whether rows of these keys have to come in this order."""
    for first, second, down in zip(one, two, directions, strict=True):
        sign = order(first, second)
        if sign is None:
            return False
        if sign:
            return (sign < 0) is not down
    return False
