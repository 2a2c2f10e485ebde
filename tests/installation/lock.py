"""Writes `locks/`: the versions of constraints.txt with the digest of each of their files, for `pip --require-hashes`.

``python -m tests.installation.lock`` needs uv (``pip install uv``), which asks the index for all files of a version:
those of every platform and Python. `core.txt` is the core, `all.txt` has the extras and what builds the wheel too.
"""

import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
COMPILE: Final = (
    "uv pip compile --quiet --no-config --universal --python-version 3.11.5 --generate-hashes --no-header --no-annotate"
)
BUILD: Final = "hatchling"
"""The package that builds the wheel, which no extra has."""

EXTRAS: Final = {"core": (), "all": ("all", "docs")}
"""The extras of each lock, by the name of its file."""


def main() -> int:
    """Write each lock; the exit code of the first command that fails."""
    for name, extras in EXTRAS.items():
        options = [word for extra in extras for word in ("--extra", extra)]
        files = ("--constraint", "constraints.txt", "--output-file", f"locks/{name}.txt", "pyproject.toml", "-")
        command = [sys.executable, "-m", *COMPILE.split(), *options, *files]
        done = subprocess.run(command, cwd=ROOT, text=True, input=BUILD if extras else "")
        if done.returncode:
            return done.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
