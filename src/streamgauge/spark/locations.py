"""Paths of files as Spark reads them: whole, and with its patterns' characters taken as they are."""

import re
from pathlib import Path
from typing import Final

_PATTERN: Final = re.compile(r"([\\{}\[\]*?])")
"""The characters of Hadoop's file patterns (FileSystem.globStatus)."""


def location(path: Path | str) -> str:
    r"""The one file or folder of that path.

    Spark looks for relative paths where its JVM was started, and takes each path for a pattern: of a folder named
    ``runs [1]`` a batch job says that there is none, and a streaming job reads nothing without a word.

    Example: ``location("/data/runs [1]")`` is ``/data/runs \[1\]``.
    """
    return _PATTERN.sub(r"\\\1", str(Path(path).absolute()))
