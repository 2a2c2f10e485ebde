"""An archive of Spark's classes: a JVM maps the file instead of reading and verifying thousands of classes again.

Class data sharing (JEP 350): the JVM of a first session writes at its end the classes that it has loaded; the JVM of
each later session starts with about half of the CPU time. An archive fits one Java program and one PySpark; a JVM that
finds any difference ignores the file. `python -m streamgauge.spark.class_archive` makes the archive.
"""

import os
import subprocess
import sys
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyspark.sql

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECONDS: Final = 300
"""Maximum time to create an archive, seconds."""


def archive(java: str) -> Path:
    """The path of the archive for this Java program and the installed PySpark, whether it exists or not."""
    program = Path(java).resolve()
    state = program.stat()
    # A JVM ignores the archive of another Java or PySpark, so each pair has a file of its own. Size and time tell an
    # updated Java from the one before it at the same path.
    key = f"{program} {state.st_size} {state.st_mtime_ns} {pyspark.__version__} {Path(pyspark.__file__).parent}"
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "streamgauge" / f"spark-{pyspark.__version__}-{blake2b(key.encode(), digest_size=6).hexdigest()}.jsa"


def options(java: str) -> str:
    """The JVM options that map the archive, empty without one."""
    try:
        place = archive(java)
        # Spark splits its Java options at blanks, so a path with one cannot be passed.
        return f" -XX:SharedArchiveFile={place} -Xlog:cds*=off" if place.is_file() and " " not in str(place) else ""
    except (OSError, RuntimeError):  # no such program, no home
        return ""


def make(java: str) -> Path:
    """Create the archive if it is missing; OSError or subprocess.SubprocessError on failure.

    A separate session evaluates a small query and writes the archive to a temporary file, which is then renamed.
    """
    place = archive(java)
    if place.exists():
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    # Named by process: two processes may create the archive at the same time.
    new = place.with_suffix(f".{os.getpid()}")
    written = ("-XX:TieredStopAtLevel=1", f"-XX:ArchiveClassesAtExit={new}", "-Xlog:cds*=off")
    options = " ".join((os.environ.get("SPARK_SUBMIT_OPTS", ""), *written))
    environment = os.environ | {"SPARK_SUBMIT_OPTS": options.strip()}
    code = "from streamgauge.spark.class_archive import warm; warm()"
    try:
        subprocess.run(
            [sys.executable, "-c", code], env=environment, check=True, timeout=SECONDS, stderr=subprocess.PIPE
        )
        new.replace(place)
    finally:
        new.unlink(missing_ok=True)
    return place


def warm() -> None:
    """Load what most sessions load (tables, windows of a stream, joins, files), then end the JVM."""
    from streamgauge.spark.session import session

    spark = session("local[2]", memory="1g", shuffle=2, app="streamgauge-class-archive")
    _evaluate(spark)
    gateway = pyspark.SparkContext._gateway
    spark.stop()
    assert gateway is not None
    gateway.shutdown()
    # The JVM ends with its standard input, and writes the archive only as it exits.
    gateway.proc.stdin.close()
    gateway.proc.wait(SECONDS)


def _evaluate(spark: "SparkSession") -> None:
    from tempfile import TemporaryDirectory

    import pyarrow as pa

    from streamgauge.formats.stream import SCHEMA
    from streamgauge.model.query import StreamWindow, Window
    from streamgauge.model.report import DueReport, View
    from streamgauge.query.parser import parse_sparql
    from streamgauge.spark.answers import answers
    from streamgauge.spark.hadoop_tables import read_parquet

    number = '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'
    rows = [("urn:s", at, at, 0, f"<urn:{at}>", "<urn:p>", number) for at in range(8)]
    names = SCHEMA.names[: len(rows[0])]
    data = {name: [row[index] for row in rows] for index, name in enumerate(names)}
    table = spark.createDataFrame(pa.table(data, schema=pa.schema([SCHEMA.field(name) for name in names])))
    due = tuple(DueReport(at, (View(at - 4, at, at - 4, at - 1, 1 << 40),)) for at in range(1, 8))
    text = "SELECT ?x (AVG(?v) AS ?a) { ?x <urn:p> ?v OPTIONAL { ?x <urn:q> ?w } FILTER(?v < 9) } GROUP BY ?x"
    windows = (StreamWindow("urn:s", Window(4, 1)),)
    with TemporaryDirectory() as folder:
        table.write.parquet(f"{folder}/stream")
        stored = read_parquet(spark, f"{folder}/stream")
        answers(spark, stored, due, parse_sparql(text), windows=windows).orderBy("report").collect()


def main() -> None:
    """Create the archive and print its path, or the reason for having none; sessions run without one too."""
    from streamgauge.spark.requirements import java

    program = java()
    try:
        print(
            f"Spark's classes are archived in {make(program)}" if program else "no Java: no archive of Spark's classes"
        )
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        reason = (getattr(error, "stderr", None) or b"").decode(errors="replace").strip().splitlines()
        print(f"no archive of Spark's classes, sessions start more slowly: {reason[-1] if reason else error}")


if __name__ == "__main__":
    main()
