"""Spark's own connector of Kafka, which its Python package does not have: four jars that Maven brings once.

Real-time mode reads and writes topics by it. Spark 4.3 runs with the connector of 4.2, the newest that was published
when this was tried; what the connector needs beside Spark is named here, so nothing else is fetched.
"""

import os
from pathlib import Path
from typing import Final

from streamgauge.formats.files import overwrite, stage
from streamgauge.formats.jvm import JvmError, prepared
from streamgauge.formats.jvm.collection import resolve

HOME: Final = "STREAMGAUGE_SPARK_KAFKA_HOME"
"""The variable that names a folder with the connector's jars, where Maven is not to fetch them."""

LIBRARIES: Final = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.2.0",
    "org.apache.kafka:kafka-clients:3.9.1",
    "org.apache.commons:commons-pool2:2.12.1",
)


def connector() -> tuple[Path, ...]:
    """The connector's jars, fetched when they are not in the user's cache; JvmError says why they are not there."""
    home = os.environ.get(HOME)
    folder = Path(home) if home else prepared("spark-kafka-4.2.0")
    if not home and not folder.is_dir():
        with stage(folder) as place:
            place.mkdir()
            resolve(LIBRARIES, place, alone=True)
            overwrite(place, folder)
    jars = tuple(sorted(folder.glob("*.jar")))
    missing = [name for name in (library.split(":")[1] for library in LIBRARIES) if not _has(jars, name)]
    if missing:
        raise JvmError(f"{folder} has no jar of {', '.join(missing)}: delete the folder, or name another by {HOME}")
    return jars


def _has(jars: tuple[Path, ...], name: str) -> bool:
    return any(jar.name.startswith(f"{name}-") for jar in jars)
