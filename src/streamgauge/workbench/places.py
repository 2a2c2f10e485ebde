"""Texts of clients that are to be paths of files."""

from typing import Final

MAX_NAME: Final = 255
"""Bytes of a file's name, as file systems bound it."""

LONGEST_PATH: Final = 3_000
"""Bytes of a path below the workbench's folder (the system's own bound, 4096, is for the folder too)."""


def is_path(text: str) -> bool:
    """Whether a text can be the path of a file: the system would refuse any other by an error."""
    try:
        named = text.encode()
    except UnicodeEncodeError:
        return False
    short = len(named) <= LONGEST_PATH and all(len(part) <= MAX_NAME for part in named.split(b"/"))
    return short and "\0" not in text
