"""A query over single messages as one streaming plan of Spark's own expressions, which real-time mode runs.

A message is an element in JSON (``formats/lines``). Its triples become an array, the query's pattern an expression over
that array: an array of solutions with a field per variable. Aggregates are Spark's, in output mode update; the row of a
group is written after the last solution of a message, not in between. No function is in Python.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from streamgauge.engines.spark.honoured import REAL_TIME
from streamgauge.model import algebra as al
from streamgauge.model.query import ContinuousQuery, Window
from streamgauge.model.semantics import (
    Counting,
    Semantics,
)
from streamgauge.query.traversal import every_expression, expressions, keyword
from streamgauge.semantics.honoured import not_honoured
from streamgauge.semantics.refusal import meaningless
from streamgauge.semantics.updates import apart
from streamgauge.spark import numbers
from streamgauge.spark.numbers import NOT_HERE, condition, number, number_of, term_of, value

_NODE: Final = r'(?:<[^<> "]*>|_:[^ ]+)'
_TRIPLE: Final = rf'^{_NODE} <[^<> "]*> (?:{_NODE}|"(?:[^"\\\n]|\\["\\nrt])*"(?:@[a-z0-9-]+|\^\^<[^<> ]*>)?) [.]$'
_STRING: Final = "^^<http://www.w3.org/2001/XMLSchema#string> ."
_LINE: Final = "t long, n long, stream string, add string, remove string, until long, advance long"
_AGGREGATES: Final = ("COUNT", "SUM", "AVG", "MIN", "MAX")


def refuse(query: ContinuousQuery, semantics: Semantics) -> str | None:
    """Why real-time mode cannot answer the query under the semantics; ``None`` if it can."""
    if semantics.content is not Counting.UPDATES:
        return f"{semantics.name} reports windows, but real-time mode answers each message (use the semantics updates)"
    other = f"{semantics.name} has borders, scopes or instants other than those of sliding [o, c) windows"
    sentences: dict[object, str] = dict.fromkeys(("borders", "scope", "since"), other)
    if reason := meaningless(query, semantics) or not_honoured(semantics, REAL_TIME, "real-time mode", sentences):
        return reason
    above, group, matched = apart(query.form.pattern)
    return _refuse_matched(matched) or _refuse_above(above) or (_refuse_group(group) if group else None)


def _refuse_matched(pattern: al.Pattern) -> str | None:
    match pattern:
        case al.BGP(patterns=triples):
            path = any(not isinstance(triple.predicate, al.Var | str) for triple in triples)
            return "a property path" if path else None if triples else "a pattern without triples"
        case al.Filter(condition=wanted, pattern=inner):
            return _refuse_matched(inner) or _refuse_condition(wanted)
        case al.Extend(pattern=inner, expression=given):
            return _refuse_matched(inner) or numbers.refuse(given) or _refuse_value(given)
        case al.Join(left=left, right=al.BGP(patterns=triples) as right):
            after = {var for triple in triples for var in al.triple_variables(triple)}
            return _refuse_matched(left) or _refuse_matched(right) or _refuse_bound(left, after)
        case _:
            return f"{keyword(pattern)}: a message is matched by one star or path"


def _refuse_bound(pattern: al.Pattern, after: set[al.Var]) -> str | None:
    while not isinstance(pattern, al.BGP):
        if isinstance(pattern, al.Extend) and pattern.variable in after:
            return f"?{pattern.variable.name} of a BIND in a pattern after it"
        pattern = pattern.left if isinstance(pattern, al.Join) else pattern.pattern  # type: ignore[union-attr]
    return None


def _refuse_condition(wanted: al.Expression) -> str | None:
    return numbers.refuse(wanted) or (None if numbers.is_condition(wanted) else "a FILTER by a value, not a condition")


def _refuse_value(expression: al.Expression) -> str | None:
    return "a condition as the value of a BIND" if numbers.is_condition(expression) else None


def _refuse_above(above: tuple[al.Pattern, ...]) -> str | None:
    for operator in above:
        if isinstance(operator, al.Filter) and (reason := _refuse_condition(operator.condition)):
            return reason
        if isinstance(operator, al.Extend) and (
            reason := numbers.refuse(operator.expression) or _refuse_value(operator.expression)
        ):
            return reason
    return None


def _refuse_group(group: al.Group) -> str | None:
    for _, aggregate in group.aggregates:
        if aggregate.function not in _AGGREGATES or aggregate.distinct:
            return (
                f"{aggregate.function}({'DISTINCT ' if aggregate.distinct else ''}...): the state would hold every term"
            )
        if aggregate.argument is not None and (
            reason := numbers.refuse(aggregate.argument) or _refuse_value(aggregate.argument)
        ):
            return reason
        if aggregate.function == "COUNT" and not isinstance(aggregate.argument, al.Var | None):
            return "COUNT of an expression"
    return None


@dataclass
class SolutionFields:
    """The struct of a solution during compilation; ``terms`` and ``numbers`` map variables to its fields."""

    computed: frozenset[str]
    terms: dict[str, str] = field(default_factory=dict)
    numbers: dict[str, str] = field(default_factory=dict)

    def of(self, row: Column) -> tuple[dict[str, Column], dict[str, Column]]:
        """The columns of terms and of numbers in a struct."""
        return {n: row[f] for n, f in self.terms.items()}, {n: row[f] for n, f in self.numbers.items()}

    def kept(self, row: Column) -> list[Column]:
        """All fields of a struct."""
        return [row[name].alias(name) for name in (*self.terms.values(), *self.numbers.values())]

    def bind(self, name: str, term: Column, column: Column | None = None) -> list[Column]:
        """New fields of a variable: its term, and its number if the query computes with it."""
        self.terms[name] = f"t{len(self.terms)}"
        columns = [term.alias(self.terms[name])]
        if name in self.computed:
            self.numbers[name] = f"n{len(self.numbers)}"
            columns.append((number_of(term) if column is None else column).alias(self.numbers[name]))
        return columns


def plan(messages: DataFrame, query: ContinuousQuery, semantics: Semantics, name: str) -> DataFrame:
    """From the messages of a topic (Spark's Kafka columns) to key and value of the answers' messages.

    ``name`` begins every key: NAME PARTITION OFFSET.LINE INSTANT PLACE.
    """
    above, group, matched = apart(query.form.pattern)
    trees = [tree for part in (*above, *_parts(matched), *((group,) if group else ())) for tree in expressions(part)]
    computed = frozenset(part.name for tree in trees for part in every_expression(tree) if isinstance(part, al.Var))
    solutions = SolutionFields(computed)
    window = query.windows[0].window
    rows_in = elements(messages, query.streams[0], semantics.t0).withColumn(
        "start", _active(fn.col("t"), window, semantics)
    )
    # Where windows slide by more than their size, no window is open in between.
    rows_in = rows_in.filter(fn.col("start") <= fn.col("t")).withColumn(
        "found", _matched(matched, fn.col("triples"), solutions)
    )
    rows = _single(rows_in) if group is None else _grouped(rows_in, group, solutions, window, semantics)
    return _written(_above(rows, above if group else (), solutions), query, name, solutions)


def _parts(pattern: al.Pattern) -> list[al.Pattern]:
    patterns = [pattern]
    while not isinstance(pattern, al.BGP):
        pattern = pattern.left if isinstance(pattern, al.Join) else pattern.pattern  # type: ignore[union-attr]
        patterns.append(pattern)
    return patterns


def elements(messages: DataFrame, stream: str, t0: int) -> DataFrame:
    """The stream's elements from t0 (ms) on: t (ms), triples, and the place in the topic.

    The job fails at a message that is not an element, and at triples that are not written canonically.
    """
    lines = fn.filter(fn.split(fn.col("value").cast("string"), "\n"), lambda line: line != "")
    one = messages.select("partition", "offset", fn.posexplode(lines).alias("line", "text"))
    read = one.select("partition", "offset", "line", fn.from_json("text", _LINE).alias("e"))
    place = fn.concat(fn.lit("partition "), fn.col("partition"), fn.lit(", offset "), fn.col("offset"))
    e = fn.col("e")
    whole = e["t"].isNotNull() & e["add"].isNotNull()
    plain = fn.coalesce(e["remove"], fn.lit("")) == ""
    broken = fn.raise_error(fn.concat(fn.lit("streamgauge: not an element in JSON at "), place)).cast("boolean")
    ends = fn.raise_error(
        fn.concat(fn.lit(f"{NOT_HERE} elements that end or remove triples: use micro-batches; "), place)
    ).cast("boolean")
    advance = e["advance"].isNotNull() & e["t"].isNull()
    wanted = (
        fn.when(advance, False)
        .when(~whole, broken)
        .when(fn.coalesce(e["stream"], fn.lit(stream)) != stream, False)
        .when(e["t"] < t0, False)
        .when(plain & e["until"].isNull(), True)
        .otherwise(ends)
    )
    kept = read.filter(wanted).select("partition", "offset", "line", e["t"].alias("t"), e["add"].alias("add"))
    texts = fn.filter(fn.split("add", "\n"), lambda text: text != "")
    return kept.withColumn("triples", fn.array_distinct(fn.transform(texts, lambda text: _triple(text, place))))


def _triple(text: Column, place: Column) -> Column:
    """A line of N-Triples as a struct (s, p, o)."""
    message = fn.concat(fn.lit("streamgauge: a triple is not canonical N-Triples at "), place, fn.lit(": "), text)
    canonical = text.rlike(_TRIPLE) & ~text.endswith(_STRING)
    line = fn.when(canonical, text).otherwise(fn.raise_error(message).cast("string"))
    first = fn.substring_index(line, " ", 1)
    both = fn.substring_index(line, " ", 2)
    # The line is ``both``, a blank, the object, a blank and a dot: the object begins two characters after ``both``
    # (counted from 1), and three characters of the rest are not its own.
    rest = fn.substring(line, fn.length(both) + 2, fn.length(line) - fn.length(both) - 3)
    return fn.struct(
        first.alias("s"), fn.substring(both, fn.length(first) + 2, fn.length(both)).alias("p"), rest.alias("o")
    )


def _active(time: Column, window: Window, semantics: Semantics) -> Column:
    """The start (ms) of the active window at a time, which is the earliest open one."""
    if window.kind == "landmark":
        return fn.lit(semantics.t0).cast("bigint")
    # Worked example: t0 0, windows of 10 s sliding by 5 s. At 9,999 ms ``past`` is 0 and the window that begins at 0
    # is active; at 10,000 ms it is 1, one slide (rounded up), so [5, 15) is, as [0, 10) has closed.
    past = time + 1 - (semantics.t0 + window.size)
    slides = fn.greatest(fn.lit(0).cast("bigint"), fn.ceil(past / window.slide))
    return slides * window.slide + semantics.t0


def _matched(pattern: al.Pattern, triples: Column, solutions: SolutionFields) -> Column:
    """An array of the solutions over a message's triples."""
    match pattern:
        case al.BGP(patterns=patterns):
            return _joined(None, patterns, triples, solutions)
        case al.Join(left=left, right=al.BGP(patterns=patterns)):
            return _joined(_matched(left, triples, solutions), patterns, triples, solutions)
        case al.Filter(condition=wanted, pattern=inner):
            matches = _matched(inner, triples, solutions)
            return fn.filter(matches, lambda row: fn.coalesce(condition(wanted, *solutions.of(row)), fn.lit(False)))
        case al.Extend(pattern=inner, variable=variable, expression=given):
            return _extended(_matched(inner, triples, solutions), variable.name, given, solutions)
    raise AssertionError(pattern)


def _extended(column: Column, name: str, expression: al.Expression, solutions: SolutionFields) -> Column:
    before = SolutionFields(solutions.computed, dict(solutions.terms), dict(solutions.numbers))
    columns: list[Column] = []

    def extended(row: Column) -> Column:
        columns[:] = _bound(name, expression, before.of(row), solutions)
        return fn.struct(*before.kept(row), *columns)

    return fn.transform(column, extended)


def _bound(
    name: str,
    expression: al.Expression,
    columns: tuple[Mapping[str, Column], Mapping[str, Column]],
    solutions: SolutionFields,
) -> list[Column]:
    terms, values = columns
    match expression:
        case al.Var(name=other):
            return solutions.bind(name, terms.get(other, fn.lit(None).cast("string")), values.get(other))
        case str():
            return solutions.bind(name, fn.lit(expression))
    computed = value(expression, values)
    return solutions.bind(name, term_of(computed), computed)


def _joined(
    column: Column | None, patterns: tuple[al.TriplePattern, ...], triples: Column, solutions: SolutionFields
) -> Column:
    for pattern in patterns:
        before = SolutionFields(solutions.computed, dict(solutions.terms), dict(solutions.numbers))
        column = _step(column, pattern, triples, before, solutions)
    assert column is not None
    return column


def _step(
    column: Column | None, pattern: al.TriplePattern, triples: Column, before: SolutionFields, solutions: SolutionFields
) -> Column:
    """The solutions joined with the matches of a triple pattern; ``solutions`` gets the new variables."""

    def pairs(row: Column | None) -> Column:
        known = {} if row is None else before.of(row)[0]
        kept = [] if row is None else before.kept(row)
        matches = fn.filter(triples, lambda triple: _fits(pattern, triple, known))

        def pair(triple: Column) -> Column:
            solutions.terms, solutions.numbers = dict(before.terms), dict(before.numbers)
            items = [item for name, part in _new(pattern, known).items() for item in solutions.bind(name, triple[part])]
            # A struct needs a field, even if the pattern has no variable.
            return fn.struct(*kept, *items) if kept or items else fn.struct(fn.lit(True).alias("there"))

        return fn.transform(matches, pair)

    return pairs(None) if column is None else fn.flatten(fn.transform(column, pairs))


def _nodes(pattern: al.TriplePattern) -> tuple[tuple[str, al.Node], ...]:
    assert isinstance(pattern.predicate, al.Var | str)
    return (("s", pattern.subject), ("p", pattern.predicate), ("o", pattern.object))


def _new(pattern: al.TriplePattern, known: Mapping[str, Column]) -> dict[str, str]:
    """The variables that a triple pattern binds, with the first position of each in the triple."""
    variables: dict[str, str] = {}
    for part, node in _nodes(pattern):
        if isinstance(node, al.Var) and node.name not in known:
            variables.setdefault(node.name, part)
    return variables


def _fits(pattern: al.TriplePattern, triple: Column, known: Mapping[str, Column]) -> Column:
    wanted = []
    new = _new(pattern, known)
    for part, node in _nodes(pattern):
        if isinstance(node, str):
            wanted.append(triple[part] == fn.lit(node))
        elif node.name in known:
            wanted.append(triple[part] == known[node.name])
        elif new[node.name] != part:
            wanted.append(triple[part] == triple[new[node.name]])
    return reduce(Column.__and__, wanted, fn.lit(True))


def _single(data_frame: DataFrame) -> DataFrame:
    """A row for each solution of a message."""
    return data_frame.select(*_PLACE, "t", "start", fn.posexplode("found").alias("place", "row"))


_PLACE: Final = ("partition", "offset", "line")


def _grouped(
    data_frame: DataFrame, group: al.Group, solutions: SolutionFields, window: Window, semantics: Semantics
) -> DataFrame:
    """A row for each group of a message in the active window, aggregated over all messages of the window."""
    names = [var.name for var, _ in group.keys]
    rows = data_frame.select(*_PLACE, "t", fn.explode(_marked(names, solutions)).alias("m"))
    timed = window.kind != "landmark"
    if timed:
        # A solution counts in each window that its time is in, so overlapping windows have a state each.
        rows = rows.withColumn("start", fn.explode(_holding(fn.col("t"), window, semantics)))
        rows = rows.withColumn("end", fn.timestamp_millis(fn.col("start") + window.size))
        rows = rows.withWatermark("end", f"{window.size} milliseconds")
    terms, values = solutions.of(fn.col("m.row"))
    keys = [terms[name].alias(f"k{place}") for place, name in enumerate(names)]
    plans = [_aggregate(f"a{place}", aggregate, terms, values) for place, (_, aggregate) in enumerate(group.aggregates)]
    inputs = rows.select(
        *_PLACE, "t", "m.place", "m.last", *(["start", "end"] if timed else []), *keys, *_inputs(plans)
    )
    by = [*(["start", "end"] if timed else []), *(f"k{place}" for place in range(len(names)))]
    # The state of a group has one row, and a message that changed it has to be named in the answer: the last one did.
    newest = [fn.last(name).alias(name) for name in (*_PLACE, "t", "place", "last")]
    state = inputs.groupBy(*by).agg(
        fn.count(fn.lit(1)).alias("rows"), *newest, *(column for p in plans for column in p.grouped)
    )
    start = fn.col("start") if timed else fn.lit(semantics.t0).cast("bigint")
    reported = state.filter(fn.col("last") & (start == _active(fn.col("t"), window, semantics)))
    solutions.terms, solutions.numbers = {}, {}
    fields = []
    for place, name in enumerate(names):
        fields += solutions.bind(name, fn.col(f"k{place}"))
    for (var, _), plan_ in zip(group.aggregates, plans, strict=True):
        solutions.computed |= {var.name}
        fields += solutions.bind(var.name, term_of(plan_.result), plan_.result)
    return reported.select(*_PLACE, "t", start.alias("start"), "place", fn.struct(*fields).alias("row"))


def _marked(names: list[str], solutions: SolutionFields) -> Column:
    """The solutions of a message with their place, and whether each is the last of its group."""
    marks = fn.col("found")

    def mark(row: Column, place: Column) -> Column:
        own = solutions.of(row)[0]

        def same(other: Column) -> Column:
            terms = solutions.of(other)[0]
            return reduce(Column.__and__, (terms[name] == own[name] for name in names), fn.lit(True))

        # ``place`` counts from 0 and Spark's slice from 1, so place + 2 is the next solution.
        later = fn.slice(marks, place + 2, fn.size(marks))
        return fn.struct(row.alias("row"), place.alias("place"), (~fn.exists(later, same)).alias("last"))

    return fn.transform(marks, mark)


def _holding(time: Column, window: Window, semantics: Semantics) -> Column:
    """The starts (ms) of the windows that contain a time."""
    latest = fn.floor((time - semantics.t0) / window.slide) * window.slide + semantics.t0
    return fn.sequence(_active(time, window, semantics), latest, fn.lit(window.slide).cast("bigint"))


@dataclass(frozen=True)
class RunningAggregate:
    """One aggregate: input columns per solution, columns of the state, and the resulting number."""

    inputs: tuple[Column, ...]
    grouped: tuple[Column, ...]
    result: Column


def _term(name: str, terms: Mapping[str, Column]) -> Column:
    return terms.get(name, fn.lit(None).cast("string"))


def _inputs(plans: list[RunningAggregate]) -> list[Column]:
    return [input_ for running in plans for input_ in running.inputs]


def _aggregate(
    name: str, aggregate: al.Aggregate, terms: Mapping[str, Column], values: Mapping[str, Column]
) -> RunningAggregate:
    """An aggregate of numbers; an error in one solution is an error of the group (18.5.1)."""
    argument = aggregate.argument
    whole = fn.lit(None).cast("decimal(38,18)")
    if aggregate.function == "COUNT":
        input_column = (
            fn.lit(1) if argument is None else _term(argument.name, terms) if isinstance(argument, al.Var) else whole
        )
        count = fn.col(name)
        result = number(fn.lit(0), count.cast(numbers.EXACT), count.cast("double"))
        return RunningAggregate((input_column.alias(name),), (fn.count(name).alias(name),), result)
    assert argument is not None
    input_column = value(argument, values)
    inputs = [input_column[part].alias(f"{name}{part[0]}") for part in ("kind", "exact", "real")]
    kind, count = fn.max(f"{name}k").alias(f"{name}k"), fn.count(f"{name}k").alias(f"{name}c")
    if aggregate.function in ("MIN", "MAX"):
        return _extreme(name, aggregate.function, argument, terms, (*inputs, kind, count))
    grouped = (kind, count, fn.sum(f"{name}e").alias(f"{name}e"), fn.sum(f"{name}r").alias(f"{name}r"))
    rank, exact, real = fn.col(f"{name}k"), fn.col(f"{name}e"), fn.col(f"{name}r")
    if aggregate.function == "AVG":
        rank = fn.greatest(rank, fn.lit(1))
        exact = fn.when(rank <= 1, exact / fn.col(f"{name}c").cast("decimal(10,0)"))
        real = real / fn.col(f"{name}c")
    # Fewer numbers than rows: some solution had an error, which makes the sum an error (18.5.1).
    extreme = fn.when(fn.col(f"{name}c") == fn.col("rows"), number(rank, exact, real))
    return RunningAggregate(tuple(inputs), grouped, extreme)


def _extreme(
    name: str, function: str, argument: al.Expression, terms: Mapping[str, Column], parts: tuple[Column, ...]
) -> RunningAggregate:
    """MIN or MAX of numbers; the job fails at another literal, whose order is a different one."""
    kind_in, exact_in, real_in, _, count = parts
    term = _term(argument.name, terms) if isinstance(argument, al.Var) else fn.lit(None).cast("string")
    odd = term.isNotNull() & kind_in.isNull()
    fails = fn.raise_error(fn.lit(f"{NOT_HERE} MIN and MAX of values other than numbers: use micro-batches")).cast(
        "double"
    )
    ranked = fn.struct(
        fn.when(odd, fails).otherwise(real_in).alias("real"), exact_in.alias("exact"), kind_in.alias("kind")
    )
    ranked_value = fn.when(kind_in.isNotNull() | odd, ranked).alias(f"{name}s")
    chosen = (fn.min if function == "MIN" else fn.max)(f"{name}s").alias(f"{name}s")
    best = fn.col(f"{name}s")
    result = fn.when(fn.col(f"{name}c") == fn.col("rows"), number(best["kind"], best["exact"], best["real"]))
    return RunningAggregate((kind_in, ranked_value), (count, chosen), result)


def _above(rows: DataFrame, above: tuple[al.Pattern, ...], solutions: SolutionFields) -> DataFrame:
    """The operators above an aggregation, from the innermost on."""
    for operator in reversed(above):
        if isinstance(operator, al.Filter):
            rows = rows.filter(condition(operator.condition, *solutions.of(fn.col("row"))))
        elif isinstance(operator, al.Extend):
            kept = solutions.kept(fn.col("row"))
            columns = _bound(operator.variable.name, operator.expression, solutions.of(fn.col("row")), solutions)
            rows = rows.withColumn("row", fn.struct(*kept, *columns))
    return rows


def _written(rows: DataFrame, query: ContinuousQuery, name: str, solutions: SolutionFields) -> DataFrame:
    """A message for each row: its key, and the answer as a line of JSON (``formats/lines``)."""
    assert isinstance(query.form, al.Select)
    terms = solutions.of(fn.col("row"))[0]
    nothing = fn.lit(None).cast("string")
    shown = [terms.get(variable, nothing) for variable in query.form.variables]
    names = fn.array(*map(fn.lit, query.form.variables)).cast("array<string>").alias("vars")
    place = fn.concat(fn.col("offset"), fn.lit("."), fn.col("line"))
    key = fn.concat_ws(" ", fn.lit(name), fn.col("partition"), place, fn.col("t"), fn.col("place"))
    fields = (
        names,
        fn.array(fn.array(*shown).cast("array<string>")).alias("add"),
        fn.col("t").alias("instant"),
        fn.array("start", "t").alias("scope"),
    )
    return rows.select(key.alias("key"), fn.to_json(fn.struct(*fields)).alias("value"))
