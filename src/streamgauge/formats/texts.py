"""Text files of people: UTF-8, with or without the byte order mark with which editors of Windows begin them."""

from pathlib import Path

from streamgauge.model.mistake import MistakeError
from streamgauge.model.obstacles import obstacle


class UnreadableError(MistakeError, ValueError):
    """A text file that cannot be read; the sentence says why."""


def read_text(path: Path) -> str:
    """The text of a file; UnreadableError."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableError(f"{path}: cannot be read: {obstacle(error)}") from error
