"""Tokens of services, as the command line is given them."""

import os
from pathlib import Path
from typing import Final

from streamgauge.formats.texts import read_text

TOKEN: Final = "STREAMGAUGE_TOKEN"
"""The environment variable with one of them."""


def read_tokens(file: Path | None) -> list[str]:
    """The tokens of a file, one a line, and of the environment."""
    lines = read_text(file).split() if file is not None else []
    return lines + ([os.environ[TOKEN]] if os.environ.get(TOKEN) else [])
