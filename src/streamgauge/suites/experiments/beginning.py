"""Files to start from: a commented experiment with its query and its stream."""

from importlib.resources import files
from pathlib import Path
from typing import Final

from streamgauge.formats.files import made_folder
from streamgauge.model.mistake import MistakeError

START: Final = ("experiment.toml", "query.rq", "stream.ttl")
"""The files that are written, from the folder ``start`` beside this module; the experiment is the first."""


class KeptError(MistakeError, ValueError):
    """A file that is there already; the sentence names the file and says what to do."""


def write_start(folder: Path) -> Path:
    """Write the files into a folder, which may be new: the experiment's path. KeptError instead of overwriting one."""
    if there := [name for name in START if (folder / name).exists()]:
        raise KeptError(f"{folder} has {', '.join(there)} already: nothing was written; name another folder")
    made_folder(folder)
    for name in START:
        text = (files("streamgauge.suites.experiments") / "start" / name).read_text(encoding="utf-8")
        with (folder / name).open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    return folder / START[0]
