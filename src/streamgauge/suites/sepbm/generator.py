"""The configuration generator (section 3.2): a folder with data, publications, and the rows due to each channel."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import pyarrow as pa

from streamgauge import workloads
from streamgauge.formats.seals import seal_beside
from streamgauge.formats.streams import FormatError, read_triples
from streamgauge.harness import made_once
from streamgauge.model.algebra import Select
from streamgauge.model.terms import Term, Triple
from streamgauge.reasoning import OntologyError, Rules, read_rules
from streamgauge.suites.sepbm import (
    BASE,
    About,
    Configuration,
    ConfigurationError,
    DueRows,
    SepbmChannel,
    read,
    selection,
    write,
    write_due,
)
from streamgauge.suites.sepbm.local import LOCAL_STATEMENTS, LocalData, LocalRows, due_in_memory, sequential
from streamgauge.suites.sepbm.selection import SelectionRule, VariedQuery, as_set, varied

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from streamgauge.suites.sepbm.distributed import DistributedData, DistributedRows

SourceData: TypeAlias = "LocalData | DistributedData"
Tell = Callable[[str], None]
"""Called with the next step."""

_COLUMNS: Final = ("subject", "predicate", "object")
_STATEMENTS: Final = 140_000
"""Approximate number of statements of a university with the Extended Data Set."""


class Reference(StrEnum):
    """The two ways to compute the due rows, with equal results."""

    AT_ONCE = "at once"  # all publications at once, over the states in which facts stand
    SEQUENTIAL = "sequential"  # the paper's way, from scratch after each publication: for small data


@dataclass(frozen=True, slots=True)
class ConfigurationRequest:
    """The request for a configuration; ``channels`` beyond the queries are derived with other constants.

    ``deletes`` is the share of publications that delete earlier ones; every other one of these is published again
    (beyond the paper). ConfigurationError names a value out of range.
    """

    publications: int = 300
    seed: int = 0
    rule: SelectionRule = SelectionRule.FIRST
    deletes: float = 0.0
    channels: int = 0
    reference: Reference = Reference.AT_ONCE

    def __post_init__(self) -> None:
        """Refuse impossible values; ConfigurationError."""
        if self.publications < 1:
            raise ConfigurationError(f"publications is {self.publications}: at least 1")
        if not 0 <= self.deletes <= selection.MOST_DELETED:
            raise ConfigurationError(f"deletes is {self.deletes}: a share from 0 to {selection.MOST_DELETED}")


@dataclass(frozen=True)
class World:
    """The source of a configuration: distinct facts, ontology, queries, origin.

    Facts are triples in memory or a frame on Spark; the configuration is generated in the same place.
    """

    facts: "tuple[Triple, ...] | DataFrame"
    ontology: tuple[Triple, ...]
    queries: tuple[SepbmChannel, ...]
    origin: Mapping[str, object]


def university(
    spark: "SparkSession | None", ontology: Iterable[Triple], universities: int = 1, seed: int = 0, names: str = "own"
) -> World:
    """LUBM as SEP-BM's Extended Data Set (``names`` as the workload's ``extended``), with its 20 queries.

    Without a session it is generated in memory; ``small`` tells whether that is feasible.
    """
    module = workloads.load("university")
    queries = tuple(SepbmChannel(name, workloads.query_text(module, name)) for name in workloads.queries(module))
    origin = {"workload": "university", "universities": universities, "seed": seed, "extended": names}
    if spark is None:
        plan = module.plan(seed, universities=universities, extended=names)  # type: ignore[attr-defined]
        return World(_triples(plan.table()), tuple(ontology), queries, origin)
    table = module.generate(spark, seed, universities=universities, extended=names)
    facts = table.select(*_COLUMNS).distinct()
    return World(facts, tuple(ontology), queries, origin)


def small(universities: int) -> bool:
    """Whether a configuration of ``universities`` universities is generated without Spark."""
    return universities * _STATEMENTS <= LOCAL_STATEMENTS


def own_data(data: Path, ontology: Iterable[Triple], queries: Path) -> World:
    """The user's own data and queries: an RDF file, and a folder of SELECT queries ``*.rq``; errors name the file."""
    channels = tuple(SepbmChannel(file.stem, file.read_text("utf-8")) for file in sorted(queries.glob("*.rq")))
    if not channels:
        raise ConfigurationError(
            f"{queries}: no queries: a file NAME.rq with a SELECT query for each channel is expected in this folder"
        )
    try:
        facts = tuple(dict.fromkeys(read_triples(data)))
    except (FormatError, OSError) as error:
        raise ConfigurationError(str(error)) from error
    return World(facts, tuple(ontology), channels, {"file": data.name})


def on_spark(spark: "SparkSession", world: World) -> World:
    """The same world with its facts on Spark."""
    if not isinstance(world.facts, tuple):
        return world
    columns = zip(*world.facts, strict=True) if world.facts else [()] * 3
    table = pa.table({name: pa.array(column, pa.string()) for name, column in zip(_COLUMNS, columns, strict=True)})
    return replace(world, facts=spark.createDataFrame(table))


def _triples(table: pa.Table) -> tuple[Triple, ...]:
    return tuple(dict.fromkeys(zip(*(table.column(name).to_pylist() for name in _COLUMNS), strict=True)))


def generate(
    world: World, request: ConfigurationRequest, folder: Path, tell: Tell = lambda _what: None
) -> Configuration:
    """Generate a configuration's folder atomically; equal worlds and requests give equal bytes.

    It runs on Spark if the world's facts are on Spark. ConfigurationError; ``tell`` receives the current step.
    """
    if folder.exists():
        raise ConfigurationError(f"{folder} already exists: remove it or choose another folder")

    def make(place: Path) -> None:
        tell("closure")
        with closing(_data(world)) as data:
            _write(data, world, request, place, tell)
        # From the folder as it was written, which is what systems are given.
        write_due(place, _due(world, read(place), request.reference, tell))
        seal_beside(place)

    return read(made_once(folder, make))


def _data(world: World) -> SourceData:
    rules = rules_of(world.ontology)
    if isinstance(world.facts, tuple):
        return LocalData(world.facts, rules)
    from streamgauge.suites.sepbm.distributed import DistributedData

    return DistributedData(world.facts.sparkSession, world.facts, rules)


def _due(world: World, stored: Configuration, reference: Reference, tell: Tell) -> Iterable[DueRows]:
    if reference is Reference.SEQUENTIAL:
        return sequential(stored, (), lambda done, of: tell(f"publication {done} of {of}"))
    tell("what is due")
    if isinstance(world.facts, tuple):
        return due_in_memory(stored)
    from streamgauge.suites.sepbm.distributed import due

    return due(world.facts.sparkSession, stored, (), tell)


def _write(data: SourceData, world: World, request: ConfigurationRequest, place: Path, tell: Tell) -> None:
    """Write everything except the due rows."""
    full = _FullClosure(data, world, request, tell)
    if rules_of(world.ontology).rules and data.closure == data.explicit:
        raise ConfigurationError("the ontology derives nothing from the data: check that both use the same IRIs")
    answers, chosen = full.chosen()
    alike = full.alike()
    resources = [term for terms in chosen.values() for term in terms]
    described = data.descriptions(resources)
    turns = selection.arranged(resources, request.publications, request.deletes, request.seed)
    # What is said about the resources leaves the base load: it is published instead.
    moved = sum(map(len, described.values()))
    made_from = {
        "of": dict(world.origin),
        **asdict(request),
        "explicit": data.explicit,
        "closure": data.closure,
        "base": data.explicit - moved,
        "resources": len(resources),
        "queries": {name: {"answers": answers[name], "resources": len(terms)} for name, terms in chosen.items()},
    }
    channels = (*world.queries, *(channel for channel, _, _ in alike))
    about = About(made_from, {channel.name: (of, value) for channel, of, value in alike})
    write(place, about, world.ontology, channels, selection.publications(turns, described))
    tell("base load")
    data.write_base(resources, place / BASE)


def rules_of(ontology: Iterable[Triple]) -> Rules:
    """The rules of an ontology; ConfigurationError names an unsupported axiom."""
    try:
        return read_rules(ontology)
    except OntologyError as error:
        raise ConfigurationError(f"the ontology: {error}") from error


@dataclass(frozen=True)
class _FullClosure:
    """The closure of the full data, over which queries are answered to choose resources."""

    data: SourceData
    world: World
    request: ConfigurationRequest
    tell: Tell

    def chosen(self) -> tuple[dict[str, int], dict[str, list[Term]]]:
        """The number of rows of each query, and the resources published for it."""
        wanted = selection.distinct_resources(self.request.publications, self.request.deletes)
        answers, offered = dict[str, int](), dict[str, list[Term]]()
        for channel in self.world.queries:
            self.tell(f"resources of {channel.name}")
            rows = self._rows(channel, as_set(channel.form))
            answers[channel.name] = rows.count()
            offered[channel.name] = rows.resources(self.request.rule, self.request.seed, channel.name, wanted)
        values = selection.dealt(offered, wanted)
        there = sum(map(len, values.values()))
        if there < wanted:
            raise ConfigurationError(
                f"the answers have {there} resources, but {wanted} are needed: request fewer publications"
            )
        return answers, values

    def alike(self) -> list[tuple[SepbmChannel, str, Term]]:
        """The additional channels: a query's shape with a value in place of its constant."""
        wanted = self.request.channels - len(self.world.queries)
        if wanted <= 0:
            return []
        # Queries without a constant that could be another one have no channels alike.
        shapes = {query.name: shape for query in self.world.queries if (shape := varied(query.form)) is not None}
        offered = {}
        for channel in self.world.queries:
            if channel.name in shapes:
                self.tell(f"channels like {channel.name}")
                offered[channel.name] = self._values(channel, shapes[channel.name], wanted)
        values_by_channel = selection.dealt(offered, wanted)
        there = sum(map(len, values_by_channel.values()))
        if there < wanted:
            available = there + len(self.world.queries)
            raise ConfigurationError(
                f"the data have values for {available} channels: request fewer channels, or larger data"
            )
        return [
            (shapes[name].channel(f"{name}-{number}", value), name, value)
            for name, values in values_by_channel.items()
            for number, (_, value) in enumerate(values, 1)
        ]

    def _values(self, channel: SepbmChannel, shape: VariedQuery, limit: int) -> list[tuple[str, Term]]:
        """The values with which a channel may replace the query's own."""
        values = self._rows(channel, shape.general).values(shape.own, self.request.seed, f"like {channel.name}", limit)
        return [(channel.name, value) for value in values]

    def _rows(self, channel: SepbmChannel, form: Select) -> "LocalRows | DistributedRows":
        try:
            return self.data.answer(form)
        except ValueError as error:
            raise ConfigurationError(f"channel {channel.name}: {error}") from error
