"""The configuration generator (section 3.2): data, a sequence of publications, what channels are due, as a folder."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from streamgauge import workloads
from streamgauge.bench.sepbm import choosing
from streamgauge.bench.sepbm.alike import Varied, as_set, selected, varied
from streamgauge.bench.sepbm.choosing import Rule
from streamgauge.bench.sepbm.configuration import BASE, About, ConfigurationError, Stored, read, write, write_due
from streamgauge.bench.sepbm.contract import Channel, Due
from streamgauge.bench.sepbm.reference import Tell, answered, due, kept, look
from streamgauge.bench.sepbm.sequential import sequential
from streamgauge.compute.reasoning import OntologyError, Rules, read_rules
from streamgauge.compute.spark.entailment import entailed
from streamgauge.compute.spark.intervals import TRIPLE
from streamgauge.compute.spark.lines import LINE, write_lines
from streamgauge.compute.spark.profile import Profile
from streamgauge.model.algebra import Select
from streamgauge.model.terms import Term, Triple
from streamgauge.wire.formats import FormatError, read_triples
from streamgauge.wire.making import keep_first, making


class Reference(StrEnum):
    """How what is due is found; both give the same."""

    AT_ONCE = "at once"  # on Spark, over intervals
    SEQUENTIAL = "sequential"  # the paper's way, from scratch after each publication: for small data


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of a configuration; ``channels`` beyond the queries are like them, with other constants.

    ``deletes`` is the share of the publications that delete what was published before; every other one of these is
    published again (beyond the paper). ConfigurationError says what is out of range.
    """

    publications: int = 300
    seed: int = 0
    rule: Rule = Rule.FIRST
    deletes: float = 0.0
    channels: int = 0
    reference: Reference = Reference.AT_ONCE

    def __post_init__(self) -> None:
        """Refuse what no sequence has."""
        if self.publications < 1:
            raise ConfigurationError(f"publications is {self.publications}: at least 1")
        if not 0 <= self.deletes <= choosing.MOST_DELETED:
            raise ConfigurationError(f"deletes is {self.deletes}: a share from 0 to {choosing.MOST_DELETED}")


@dataclass(frozen=True)
class World:
    """What a configuration is made of: facts (subject, predicate, object, each once), ontology, queries, its origin."""

    facts: DataFrame
    ontology: tuple[Triple, ...]
    queries: tuple[Channel, ...]
    origin: Mapping[str, object]


def university(
    spark: SparkSession, ontology: Iterable[Triple], universities: int = 1, seed: int = 0, names: str = "own"
) -> World:
    """LUBM as SEP-BM's Extended Data Set (``names`` as the workload's ``extended``), with its 20 queries."""
    module = workloads.load("university")
    table = module.generate(spark, seed, universities=universities, extended=names)
    queries = tuple(Channel(name, workloads.query_text(module, name)) for name in workloads.queries(module))
    origin = {"workload": "university", "universities": universities, "seed": seed, "extended": names}
    return World(table.select(*TRIPLE).distinct(), tuple(ontology), queries, origin)


def own_data(spark: SparkSession, data: Path, ontology: Iterable[Triple], queries: Path) -> World:
    """Data and queries of one's own: an RDF file, and a folder of SELECT queries ``*.rq``; errors name the file."""
    channels = tuple(Channel(file.stem, file.read_text("utf-8")) for file in sorted(queries.glob("*.rq")))
    if not channels:
        raise ConfigurationError(f"{queries}: there is no query: files NAME.rq with a SELECT each are expected here")
    try:
        columns = list(zip(*dict.fromkeys(read_triples(data)), strict=True)) or [()] * 3
    except (FormatError, OSError) as error:
        raise ConfigurationError(str(error)) from error
    table = pa.table({name: pa.array(column, pa.string()) for name, column in zip(TRIPLE, columns, strict=True)})
    return World(spark.createDataFrame(table), tuple(ontology), channels, {"file": data.name})


def generate(spark: SparkSession, world: World, asked: Asked, folder: Path, tell: Tell = lambda _what: None) -> Stored:
    """Makes a configuration's folder, whole or not at all; the same world and wishes give the same bytes.

    ConfigurationError says what cannot be done; ``tell`` is told what is done next.
    """
    if folder.exists():
        raise ConfigurationError(f"{folder} is there already: remove it or name another place")
    facts = world.facts.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        with making(folder) as place:
            _write(spark, replace(world, facts=facts), asked, place, tell)
            write_due(place, _due(spark, read(place), asked.reference, tell))
            keep_first(place, folder)
    finally:
        facts.unpersist()
    return read(folder)


def _due(spark: SparkSession, stored: Stored, reference: Reference, tell: Tell) -> Iterable[Due]:
    if reference is Reference.AT_ONCE:
        return due(spark, stored, (), tell)
    return sequential(stored, (), lambda done, of: tell(f"publication {done} of {of}"))


def _write(spark: SparkSession, world: World, asked: Asked, place: Path, tell: Tell) -> None:
    """All but what is due."""
    tell("closure")
    rules = rules_of(world.ontology)
    still = world.facts.select(*TRIPLE, *(fn.lit(0).alias(name) for name in ("lo", "hi")))
    closed = kept(entailed(spark, still, rules))
    try:
        full = _Full(spark, world, asked, closed, look(closed), tell)
        explicit, closure = world.facts.count(), closed.count()
        if rules.rules and closure == explicit:
            raise ConfigurationError("the ontology derives nothing of the data: are the IRIs in it those in the data?")
        answers, chosen = full.chosen()
        alike = full.alike()
    finally:
        closed.unpersist()
    resources = [term for terms in chosen.values() for term in terms]
    described = choosing.descriptions(world.facts, resources)
    turns = choosing.arranged(resources, asked.publications, asked.deletes, asked.seed)
    moved = sum(map(len, described.values()))
    made = {
        "of": dict(world.origin),
        **asdict(asked),
        "explicit": explicit,
        "closure": closure,
        "base": explicit - moved,
        "resources": len(resources),
        "queries": {name: {"answers": answers[name], "resources": len(terms)} for name, terms in chosen.items()},
    }
    channels = (*world.queries, *(channel for channel, _, _ in alike))
    about = About(made, {channel.name: (of, value) for channel, of, value in alike})
    write(place, about, world.ontology, channels, choosing.publications(turns, described))
    tell("base load")
    write_base(world.facts.join(fn.broadcast(choosing.among(spark, resources)), "subject", "left_anti"), place / BASE)


def rules_of(ontology: Iterable[Triple]) -> Rules:
    """The rules of an ontology; ConfigurationError names the axiom that is outside the supported ones."""
    try:
        return read_rules(ontology)
    except OntologyError as error:
        raise ConfigurationError(f"the ontology: {error}") from error


@dataclass(frozen=True)
class _Full:
    """The full data's closure, in which the queries are answered to choose from."""

    spark: SparkSession
    world: World
    asked: Asked
    closed: DataFrame
    known: Profile
    tell: Tell

    def chosen(self) -> tuple[dict[str, int], dict[str, list[Term]]]:
        """How many rows each query has, and which resources are published for it."""
        wanted = choosing.distinct_resources(self.asked.publications, self.asked.deletes)
        described = _described(self.world.facts).persist()
        answers, offered = dict[str, int](), dict[str, list[Term]]()
        for channel in self.world.queries:
            self.tell(f"resources of {channel.name}")
            rows = self._rows(channel, as_set(selected(channel))).persist()
            answers[channel.name] = rows.count()
            seed, rule = self.asked.seed, self.asked.rule
            offered[channel.name] = choosing.candidates(rows, rule, described, seed, channel.name, wanted)
            rows.unpersist()
        described.unpersist()
        found = choosing.dealt(offered, wanted)
        there = sum(map(len, found.values()))
        if there < wanted:
            raise ConfigurationError(
                f"the answers name {there} resources, {wanted} are needed: ask for less publications"
            )
        return answers, found

    def alike(self) -> list[tuple[Channel, str, Term]]:
        """The channels that are asked for beyond the queries: of which query, with which value."""
        wanted = self.asked.channels - len(self.world.queries)
        if wanted <= 0:
            return []
        shapes = {each.name: shape for each in self.world.queries if (shape := varied(selected(each))) is not None}
        offered = {}
        for channel in self.world.queries:
            if channel.name in shapes:
                self.tell(f"channels like {channel.name}")
                offered[channel.name] = self._values(channel, shapes[channel.name], wanted)
        found = choosing.dealt(offered, wanted)
        there = sum(map(len, found.values()))
        if there < wanted:
            most = there + len(self.world.queries)
            raise ConfigurationError(f"the data have values for {most} channels: ask for no more, or for larger data")
        return [
            (shapes[name].channel(f"{name}-{number}", value), name, value)
            for name, values in found.items()
            for number, (_, value) in enumerate(values, 1)
        ]

    def _values(self, channel: Channel, shape: Varied, most: int) -> list[tuple[str, Term]]:
        """What a channel may ask for in the place of the query's own value."""
        rows = self._rows(channel, shape.general)
        values = rows.select(rows.columns[-1]).distinct()
        if shape.own is not None:
            values = values.filter(fn.col(values.columns[0]) != shape.own)
        return [(channel.name, each) for each in choosing.drawn(values, self.asked.seed, f"like {channel.name}", most)]

    def _rows(self, channel: Channel, form: Select) -> DataFrame:
        try:
            return answered(self.spark, self.closed, self.known, form)
        except ValueError as error:
            raise ConfigurationError(f"channel {channel.name}: {error}: Spark does not answer it") from error


def _described(facts: DataFrame) -> DataFrame:
    """What statements are about; not where one has a blank node, which would be another when it is published."""
    blank = fn.max(fn.col("object").startswith("_:"))
    return facts.groupBy("subject").agg(blank.alias("blank")).filter("not blank").select("subject")


def write_base(facts: DataFrame, file: Path) -> None:
    """Facts as one N-Triples file, sorted by bytes."""
    write_lines(facts.selectExpr(LINE), file)
