"""Tokens of services, as the command line is given them."""

import os
from pathlib import Path
from typing import Final

from streamgauge.formats.files import read_text
from streamgauge.model.mistake import MistakeError

TOKEN: Final = "STREAMGAUGE_TOKEN"
"""The environment variable with one of them."""


def read_tokens(file: Path | None) -> list[str]:
    """The tokens of a file, one a line, and of the environment; MistakeError for a file without one.

    A service that is started with a file means to be guarded; without a token it would serve everybody.
    """
    lines = read_text(file).split() if file is not None else []
    if file is not None and not lines:
        raise MistakeError(f"{file}: there is no token in it: write one on a line")
    return lines + ([os.environ[TOKEN]] if os.environ.get(TOKEN) else [])
