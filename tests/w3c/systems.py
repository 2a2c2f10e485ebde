"""What runs the tests: the definition, `live` over closes and over changes, Spark, and the reader of queries."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from streamgauge.incremental import refuse as refuse_incremental
from streamgauge.model import algebra as al
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.terms import Row
from streamgauge.query.parser import PlainQuery, read_sparql
from streamgauge.query.text import QueryError, UnansweredError
from streamgauge.query.traversal import answer_order
from streamgauge.query.updates import UpdateContext, read_update
from streamgauge.semantics.definition import refuse
from streamgauge.semantics.evaluate import TRIPLE_COLUMNS
from streamgauge.semantics.profiles import RSPQL
from streamgauge.semantics.refusal import RefusedError
from tests.sparql.simple.agreement import by_changes, by_definition, by_snapshots, windows
from tests.sparql.simple.drawn import Case
from tests.sparql.simple.patterns import Dataset
from tests.w3c.results import Answer, difference, expected, read_triples
from tests.w3c.suites import Kind, Test, iri_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RIGHT = "right"
REFUSED = "refused"
WRONG = "wrong"

IN_PROCESS = {"definition": by_definition, "close": by_snapshots, "change": by_changes}
"""The evaluators of this process by the names that the command takes."""


@dataclass(frozen=True)
class Outcome:
    """What became of a test: RIGHT, REFUSED or WRONG, with a sentence for the latter two."""

    test: Test
    system: str
    verdict: str
    why: str = ""


@dataclass(frozen=True)
class Prepared:
    """An evaluation test as a case, beside the answer that it asks for."""

    test: Test
    case: Case
    wanted: Answer

    def judged(self, system: str, rows: Sequence[Row]) -> Outcome:
        """The outcome of an evaluator's rows; only the definition has an order."""
        answer = Answer(_columns(self.case.form), tuple(rows), system == "definition")
        why = difference(self.wanted, answer, self.test.lax)
        return Outcome(self.test, system, WRONG if why else RIGHT, why)

    def refused(self, system: str) -> Outcome:
        """The outcome where an evaluator refuses the query, with its sentence."""
        form, names = self.case.form, list(self.case.dataset.named)
        if system == "spark":
            from streamgauge.spark.answers import refuse as refuse_spark

            return Outcome(self.test, system, REFUSED, refuse_spark(form) or "rows in an order that SPARQL leaves open")
        if system != "definition":
            return Outcome(self.test, system, REFUSED, refuse_incremental(form, names, ranked=True) or "")
        try:
            refuse(ContinuousQuery(form, windows(self.case.dataset)), RSPQL)
        except RefusedError as error:
            return Outcome(self.test, system, REFUSED, str(error))
        return Outcome(self.test, system, WRONG, "refused without a reason")


def _columns(form: al.QueryForm) -> tuple[str, ...]:
    if isinstance(form, al.Select):
        return form.variables
    return ("ask",) if isinstance(form, al.Ask) else TRIPLE_COLUMNS


def prepared(folder: Path, test: Test) -> Prepared | Outcome:
    """The case of an evaluation test; an outcome where the query is not read."""
    try:
        query = read_sparql(test.text, test.base)
        if query.unanswered is not None:
            raise query.unanswered
    except UnansweredError as error:
        return Outcome(test, "reader", REFUSED, error.what)
    except QueryError as error:
        return Outcome(test, "reader", WRONG, error.what)
    assert test.result is not None
    wanted = expected(test.result, iri_of(folder, test.result), answer_order(query.form) is not None)
    return Prepared(test, Case(query.form, _dataset(folder, test, query)), wanted)


def _dataset(folder: Path, test: Test, query: PlainQuery) -> Dataset:
    """The data of the manifest, or what FROM and FROM NAMED of the query name."""
    graphs = dict(test.graphs)
    files = list(test.data)
    if query.default_graphs or query.named_graphs:
        paths = {iri_of(folder, path): path for path in test.action.parent.iterdir()}
        files = [paths[iri] for iri in query.default_graphs]
        graphs = {iri: paths[iri] for iri in query.named_graphs}
    default, named = [], {}
    for number, path in enumerate(files):
        for name, triples in read_triples(path, iri_of(folder, path), f"d{number}").items():
            if name is None:
                default.extend(triples)
            else:
                named.setdefault(f"<{name}>", []).extend(triples)
    for number, (iri, path) in enumerate(graphs.items()):
        named[f"<{iri}>"] = read_triples(path, iri_of(folder, path), f"g{number}").get(None, [])
    return Dataset(tuple(dict.fromkeys(default)), {name: tuple(dict.fromkeys(some)) for name, some in named.items()})


def evaluated(item: Prepared, system: str) -> Outcome:
    """The outcome of an evaluation test on an evaluator of this process."""
    rows = IN_PROCESS[system](item.case)
    return item.refused(system) if rows is None else item.judged(system, rows)


def on_spark(spark: "SparkSession", items: Sequence[Prepared]) -> Iterator[Outcome]:
    """The outcomes of evaluation tests, many in one job."""
    from tests.sparql.simple.on_spark import many_by_spark

    for item, rows in zip(items, many_by_spark(spark, [[item.case] for item in items]), strict=True):
        yield item.refused("spark") if rows is None else item.judged("spark", rows[0])


def read_outcome(test: Test) -> Outcome:
    """The outcome of a syntax test of queries: what is legal is read, whether or not it is answered."""
    try:
        read_sparql(test.text, test.base)
    except QueryError as error:
        return Outcome(test, "reader", RIGHT if test.kind is Kind.REFUSED else WRONG, error.what)
    return Outcome(test, "reader", WRONG if test.kind is Kind.REFUSED else RIGHT, "accepted")


def update_outcome(test: Test) -> Outcome:
    """The outcome of a syntax test of updates; what is legal and not done is refused by name."""
    try:
        read_update(f"BASE <{test.base}>\n{test.text}", UpdateContext(str, graphs=True))
    except QueryError as error:
        named = REFUSED if isinstance(error, UnansweredError) else WRONG
        return Outcome(test, "reader", RIGHT if test.kind is Kind.REFUSED_UPDATE else named, error.what)
    return Outcome(test, "reader", WRONG if test.kind is Kind.REFUSED_UPDATE else RIGHT, "accepted")
