"""Spark's Kafka connector, which its Python package lacks: four jars that Maven downloads once.

Real-time mode reads and writes topics with it. Spark 4.3 runs with the connector of 4.2, the newest at the time of
writing; the list includes the connector's dependencies beyond Spark, so nothing else is downloaded.
"""

import os
from pathlib import Path
from typing import Final

from streamgauge.formats.files import overwrite, stage
from streamgauge.formats.jvm import JvmError, prepared
from streamgauge.formats.jvm.collection import resolve

HOME: Final = "STREAMGAUGE_SPARK_KAFKA_HOME"
"""The environment variable that names a folder with the connector's jars, used instead of Maven's download."""

LIBRARIES: Final = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.2.0",
    "org.apache.kafka:kafka-clients:3.9.1",
    "org.apache.commons:commons-pool2:2.12.1",
)


def connector() -> tuple[Path, ...]:
    """The connector's jars, downloaded if the user's cache lacks them; JvmError if that fails."""
    home = os.environ.get(HOME)
    folder = Path(home) if home else prepared("spark-kafka-4.2.0")
    if not home and not folder.is_dir():
        # Staged, so that an interrupted download is not taken for a complete folder.
        with stage(folder) as place:
            place.mkdir()
            resolve(LIBRARIES, place, alone=True)
            overwrite(place, folder)
    jars = tuple(sorted(folder.glob("*.jar")))
    missing = [name for name in (library.split(":")[1] for library in LIBRARIES) if not _has(jars, name)]
    if missing:
        raise JvmError(f"{folder} has no jar of {', '.join(missing)}: delete the folder, or set {HOME} to another")
    return jars


def _has(jars: tuple[Path, ...], name: str) -> bool:
    return any(jar.name.startswith(f"{name}-") for jar in jars)
