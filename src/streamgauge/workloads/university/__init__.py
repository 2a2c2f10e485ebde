"""Universities as LUBM has them, with SEP-BM's Extended Data Set and its twenty queries.

Guo, Pan and Heflin, LUBM: a benchmark for OWL knowledge base systems (2005): the same seed gives the same triples as
its published generator. Murth, Winkler, Biffl, Kühn and Moser, Performance testing of semantic publish/subscribe
systems (2010): the Extended Data Set and queries 15 to 20.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamgauge.workloads.parameters import Parameter, ParameterError, duration, resolve, whole
from streamgauge.workloads.university.departments import LISTS, words

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from streamgauge.workloads.plan import TablePlan

NAME = "university"
ABOUT = "Universities as LUBM draws them, a resource an element, plain or as SEP-BM's Extended Data Set."
QUERIES = Path(__file__).parent / "queries"
ONTOLOGY = Path(__file__).parent / "ontology.ttl"
"""The facts about classes and properties that the queries need."""

MOST = 1 << 20
"""How many universities there are at most, and how many resources one has."""

TASKS = 1024
"""As many tasks at most make universities on Spark, one for each unless that would be more."""

PARAMETERS = {
    "universities": Parameter(whole, 1, "how many universities"),
    "first": Parameter(whole, 0, "the number of the first"),
    "extended": Parameter(str, "no", "no, or the names of the Extended Data Set: own (a small list) or census"),
    "interval": Parameter(duration, 1, "time between two resources (ms, or 1s)"),
}


def plan(seed: int, **given: object) -> "TablePlan":
    """How the stream table (wire.stream.SCHEMA) is made: an element for each resource, university by university.

    ParameterError names a parameter that is unknown or out of range.
    """
    from streamgauge.workloads.university.departments import stream_plan

    values: dict[str, Any] = resolve(NAME, PARAMETERS, given)
    if (
        values["first"] < 0
        or not 1 <= values["universities"] <= MOST
        or values["first"] + values["universities"] > MOST
    ):
        asked = f"universities {values['universities']} from {values['first']} on"
        raise ParameterError(f"{NAME}: {asked}: at least 1, with numbers below {MOST}")
    if values["extended"] != "no":
        if values["extended"] not in LISTS:
            raise ParameterError(f"{NAME}: extended is {values['extended']!r}: there are no, {', '.join(LISTS)}")
        words(values["extended"])
    return stream_plan(seed, values)


def generate(spark: "SparkSession", seed: int, *, partitions: int | None = None, **given: object) -> "DataFrame":
    """The table of ``plan`` on Spark; the same rows for every number of partitions."""
    from streamgauge.workloads.distributed import frame

    made = plan(seed, **given)
    return frame(spark, made, partitions or min(made.ids, TASKS))
