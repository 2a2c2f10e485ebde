"""Observations as RDF: seven triples each, in the vocabulary of the sensor data that YABench and CSRBench use."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from streamgauge.model.terms import RDF_TYPE, XSD
from streamgauge.workloads.weather import draws

SSW = "http://knoesis.wright.edu/ssw/"
OM_OWL = SSW + "ont/sensor-observation.owl#"
WEATHER = SSW + "ont/weather.owl#"

_PROPERTIES = {
    "AirTemperature": ("TemperatureObservation", "fahrenheit"),
    "RelativeHumidity": ("RelativeHumidityObservation", "percentage"),
}


def stream_table(observations: DataFrame, stream: str) -> DataFrame:
    """The stream table of observations (sequence, property, station, time, value in tenths)."""
    parts = [F.when(F.col("property") == name, F.array(*_triples(name))) for name in _PROPERTIES]
    exploded = observations.select("sequence", "time", F.posexplode(F.coalesce(*parts)).alias("position", "triple"))
    return exploded.select(
        F.lit(stream).alias("stream"),
        "time",
        "sequence",
        "position",
        *(F.col("triple")[part].alias(part) for part in ("subject", "predicate", "object")),
    )


def properties(observations: DataFrame, seed: int, *, humidity: bool) -> DataFrame:
    """Observations (n, station, time, value) as elements; with humidity each is followed by one of 0 to 100 %."""
    temperature = F.struct(F.lit("AirTemperature").alias("property"), F.col("value"))
    drawn = draws.below(101, seed, "humidity", F.col("station"), F.col("time")) * 10
    second = F.struct(F.lit("RelativeHumidity").alias("property"), drawn.cast("long").alias("value"))
    both = F.array(temperature, second) if humidity else F.array(temperature)
    exploded = observations.select("n", "station", "time", F.posexplode(both).alias("which", "seen"))
    sequence = (F.col("n") * (2 if humidity else 1) + F.col("which")).alias("sequence")
    return exploded.select(sequence, "station", "time", F.col("seen.property"), F.col("seen.value"))


def _triples(name: str) -> list[Column]:
    kind, unit = _PROPERTIES[name]
    place = F.concat(F.lit(f"{name}_A"), F.col("station").cast("string"), F.lit("_"), F.col("time").cast("string"))
    observation = F.concat(F.lit(f"<{SSW}Observation_"), place, F.lit(">"))
    measure = F.concat(F.lit(f"<{SSW}MeasureData_"), place, F.lit(">"))
    sensor = F.concat(F.lit(f"<{SSW}System_A"), F.col("station").cast("string"), F.lit(">"))
    return [
        _triple(observation, RDF_TYPE, _iri(WEATHER + kind)),
        _triple(observation, f"<{OM_OWL}observedProperty>", _iri(f"{WEATHER}_{name}")),
        _triple(observation, f"<{OM_OWL}procedure>", sensor),
        _triple(observation, f"<{OM_OWL}result>", measure),
        _triple(measure, RDF_TYPE, _iri(OM_OWL + "MeasureData")),
        _triple(measure, f"<{OM_OWL}floatValue>", _value()),
        _triple(measure, f"<{OM_OWL}uom>", _iri(WEATHER + unit)),
    ]


def _triple(subject: Column, predicate: str, obj: Column) -> Column:
    return F.struct(subject.alias("subject"), F.lit(predicate).alias("predicate"), obj.alias("object"))


def _iri(text: str) -> Column:
    return F.lit(f"<{text}>")


def _value() -> Column:
    """The canonical xsd:float of a number of tenths."""
    tenths = F.col("value")
    whole = F.floor(tenths / 10).cast("string")
    parts = (tenths.cast("decimal(18,0)") / 10).cast("decimal(18,1)").cast("string")
    number = F.when(tenths % 10 == 0, whole).otherwise(parts)
    return F.concat(F.lit('"'), number, F.lit(f'"^^<{XSD}float>'))
