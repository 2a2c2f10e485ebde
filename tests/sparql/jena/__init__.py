"""Apache Jena ARQ, from Maven, as a second opinion on queries: does it accept a text, what does it answer?"""

import json
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from streamgauge.formats.jvm import JvmError
from streamgauge.model.terms import XSD, Row
from tests.spark.hadoop import jars

VERSION: Final = "5.6.0"
"""The last one for Java 17."""
PROGRAM: Final = Path(__file__).parent / "Jena.java"
_BOOLEANS: Final = {True: f'"true"^^<{XSD}boolean>', False: f'"false"^^<{XSD}boolean>'}


class Jena:
    """A JVM that answers queries one by one."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def refusal(self, text: str, base: str = "http://e/") -> str:
        """Why it does not accept a text; empty where it does."""
        return str(self._reply(query=text, base=base).get("error", ""))

    def rows(self, text: str, quads: Sequence[str], base: str = "http://e/") -> tuple[Row, ...] | str:
        """Its answer over lines of N-Quads, or the sentence about why there is none."""
        reply = self._reply(query=text, base=base, data="".join(quads))
        if "error" in reply:
            return str(reply["error"])
        return tuple((_BOOLEANS[row],) if isinstance(row, bool) else tuple(row) for row in reply["rows"])

    def _reply(self, **asked: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        reply: dict[str, Any] = json.loads(self._process.stdout.readline())
        return reply


@contextmanager
def jena() -> Iterator[Jena]:
    """Jena while it is needed; skips a test where there is no Java or Maven, or Maven does not get it."""
    for program in ("java", "mvn"):
        if shutil.which(program) is None:
            pytest.skip(f"there is no {program}: Apache Jena is asked where it is")
    try:
        own = jars(f"jena-{VERSION}", ((f"org.apache.jena:jena-arq:{VERSION}",), False))
    except JvmError as error:
        pytest.skip(f"Apache Jena is not asked: {error}")
    command = ["java", "-Xmx512m", "-XX:TieredStopAtLevel=1", "-cp", f"{own}/*", str(PROGRAM)]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, encoding="utf-8"
    )
    try:
        yield Jena(process)
    finally:
        process.communicate()
