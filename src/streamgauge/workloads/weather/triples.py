"""Observations as RDF, seven triples each (six for a truth value), in the vocabulary that YABench and CSRBench use."""

from collections.abc import Sequence
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from streamgauge.model.terms import RDF_TYPE, XSD
from streamgauge.workloads.weather.phenomena import PHENOMENA, Phenomenon

SSW = "http://knoesis.wright.edu/ssw/"
OM_OWL = SSW + "ont/sensor-observation.owl#"
WEATHER = SSW + "ont/weather.owl#"


class Streams(NamedTuple):
    """Which stream a station's observations enter: ``iri``, or ``iri-1`` to ``iri-number`` in turn."""

    iri: str
    number: int

    def of(self, station: Column) -> Column:
        """The stream's IRI."""
        if self.number == 1:
            return F.lit(self.iri)
        return F.concat(F.lit(f"{self.iri}-"), (station % self.number + 1).cast("string"))


def stream_table(observations: DataFrame, streams: Streams) -> DataFrame:
    """The stream table of observations (sequence, property, station, time, value in tenths)."""
    parts = [F.when(F.col("property") == each.name, F.array(*_triples(each))) for each in PHENOMENA]
    exploded = observations.select(
        "sequence", "time", "station", F.posexplode(F.coalesce(*parts)).alias("position", "triple")
    )
    return exploded.select(
        streams.of(F.col("station")).alias("stream"),
        "time",
        "sequence",
        "position",
        *(F.col("triple")[part].alias(part) for part in ("subject", "predicate", "object")),
    )


def properties(observations: DataFrame, seed: int, seen: Sequence[Phenomenon]) -> DataFrame:
    """Observations (n, station, time, value) as elements, one for each of the phenomena ``seen``, in their order."""
    values = [F.struct(F.lit(each.name).alias("property"), each.drawn(seed).alias("value")) for each in seen]
    exploded = observations.select("n", "station", "time", "value").select(
        "n", "station", "time", F.posexplode(F.array(*values)).alias("which", "seen")
    )
    sequence = (F.col("n") * len(seen) + F.col("which")).alias("sequence")
    return exploded.select(sequence, "station", "time", F.col("seen.property"), F.col("seen.value"))


def _triples(seen: Phenomenon) -> list[Column]:
    station, time = F.col("station").cast("string"), F.col("time").cast("string")
    place = F.concat(F.lit(f"{seen.name}_A"), station, F.lit("_"), time)
    observation = F.concat(F.lit(f"<{SSW}Observation_"), place, F.lit(">"))
    measure = F.concat(F.lit(f"<{SSW}MeasureData_"), place, F.lit(">"))
    sensor = F.concat(F.lit(f"<{SSW}System_A"), station, F.lit(">"))
    return [
        _triple(observation, RDF_TYPE, _iri(WEATHER + seen.kind)),
        _triple(observation, f"<{OM_OWL}observedProperty>", _iri(f"{WEATHER}_{seen.name}")),
        _triple(observation, f"<{OM_OWL}procedure>", sensor),
        _triple(observation, f"<{OM_OWL}result>", measure),
        *(_truth(measure) if seen.unit is None else _number(measure, seen.unit)),
    ]


def _number(measure: Column, unit: str) -> list[Column]:
    return [
        _triple(measure, RDF_TYPE, _iri(OM_OWL + "MeasureData")),
        _triple(measure, f"<{OM_OWL}floatValue>", tenths(F.col("value"))),
        _triple(measure, f"<{OM_OWL}uom>", _iri(WEATHER + unit)),
    ]


def _truth(measure: Column) -> list[Column]:
    truth = F.when(F.col("value") > 0, F.lit(f'"true"^^<{XSD}boolean>')).otherwise(F.lit(f'"false"^^<{XSD}boolean>'))
    return [
        _triple(measure, RDF_TYPE, _iri(OM_OWL + "TruthData")),
        _triple(measure, f"<{OM_OWL}booleanValue>", truth),
    ]


def _triple(subject: Column, predicate: str, obj: Column) -> Column:
    return F.struct(subject.alias("subject"), F.lit(predicate).alias("predicate"), obj.alias("object"))


def _iri(text: str) -> Column:
    return F.lit(f"<{text}>")


def tenths(count: Column) -> Column:
    """The canonical xsd:float of a number of tenths."""
    whole = F.floor(count / 10).cast("string")
    parts = (count.cast("decimal(18,0)") / 10).cast("decimal(18,1)").cast("string")
    number = F.when(count % 10 == 0, whole).otherwise(parts)
    return F.concat(F.lit('"'), number, F.lit(f'"^^<{XSD}float>'))
