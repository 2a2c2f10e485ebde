"""Files to start from: a commented experiment with its query and its stream."""

from importlib.resources import files
from pathlib import Path
from typing import Final

from streamgauge.formats.files import made_folder
from streamgauge.model.mistake import MistakeError

START: Final = ("experiment.toml", "query.rq", "stream.ttl")
"""The files to write, copies of those in the folder ``start`` next to this module; the first is the experiment."""


class KeptError(MistakeError, ValueError):
    """A file that already exists; the sentence names it and what to do."""


def write_start(folder: Path) -> Path:
    """Write the files into a new or existing folder and return the experiment's path; KeptError if one exists."""
    if existing := [name for name in START if (folder / name).exists()]:
        raise KeptError(f"{folder} already has {', '.join(existing)}: nothing was written; name another folder")
    made_folder(folder)
    for name in START:
        text = (files("streamgauge.suites.experiments") / "start" / name).read_text(encoding="utf-8")
        # Mode x: a file that somebody made since the check above is not overwritten.
        with (folder / name).open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    return folder / START[0]
