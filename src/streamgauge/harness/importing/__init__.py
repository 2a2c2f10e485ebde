"""Importing what others recorded: every module here with ``recognises`` is a format; adding one edits nothing.

Each run becomes a run folder that ``check`` judges.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Protocol, cast

from streamgauge.formats.files import made_folder, overwrite, stage
from streamgauge.formats.run import write_run
from streamgauge.formats.stream import StreamError, write
from streamgauge.harness.importing.foreign import AnswerTimes, ForeignError, ImportedRun, ImportRequest
from streamgauge.model.element import StreamElement
from streamgauge.model.phrases import offered, spelled
from streamgauge.semantics.origin import near
from streamgauge.sources.named import recorded

__all__ = ["AnswerTimes", "ForeignError", "ImportRequest", "ImportedRun", "formats", "import_runs"]


class Importer(Protocol):
    """The members of a format's module: its name, a line about it, whether a path is one, and the runs in it."""

    NAME: str
    ABOUT: str

    def recognises(self, path: Path) -> bool:
        """Whether the path looks like this format; it never raises."""
        ...

    def read(self, path: Path, request: ImportRequest) -> Iterable[ImportedRun]:
        """The runs in it; ForeignError names the file and the line or field."""
        ...


@cache
def formats() -> dict[str, Importer]:
    """Every format by its name, sorted."""
    modules = (import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__))
    found = [cast(Importer, module) for module in modules if hasattr(module, "recognises")]
    return {one.NAME: one for one in sorted(found, key=lambda one: one.NAME)}


def import_runs(
    sources: Sequence[Path], request: ImportRequest, out: Path, form: str | None = None
) -> Iterator[tuple[Path, ImportedRun]]:
    """Write every run of the sources as a run folder, and say where: ``out`` itself for one run, else a folder in it.

    ForeignError names the source, and the line or field that is wrong; nothing is overwritten.
    """
    found = [imported for source in sources for imported in _importer(source, form).read(source, request)]
    names = [imported.name for imported in found]
    for imported in found:
        if names.count(imported.name) > 1:
            raise ForeignError(f"two runs are named {imported.name}: import them one by one")
    targets = [out if len(found) == 1 else out / imported.name for imported in found]
    for target in targets:
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise ForeignError(f"{target} is there already: remove it or name another place with --out")
    for target, imported in zip(targets, found, strict=True):
        until = _write(target, imported)
        note = f"time came to {until:,} ms: no report was due after it (--advance-to says otherwise)"
        yield target, replace(imported, notes=(*imported.notes, note))


def _importer(source: Path, form: str | None) -> Importer:
    if not source.exists():
        raise ForeignError(f"{source}: there is no such file or folder")
    if form is not None:
        if (found := spelled(form, formats())) is None:
            raise ForeignError(f"there is no format {form!r} to import: {offered(form, formats())}")
        return formats()[found]
    for one in formats().values():
        if one.recognises(source):
            return one
    raise ForeignError(f"{source}: what format is it? Name it with --format {', '.join(formats())}")


def _write(target: Path, imported: ImportedRun) -> int:
    """The folder whole or not at all: made beside its place, then moved; how far time came (ms)."""
    with stage(target) as place:
        made_folder(place / "stream")
        last = _Last()
        elements = recorded((imported.stream,), imported.streams, imported.reading, last.hear)
        try:
            write(last.of(elements), place / "stream" / "part-0.parquet")
        except StreamError as error:
            raise ForeignError(f"{imported.stream.address}: {error}") from error
        run = imported.run(last.time)
        begun = near(run.header.query.windows, run.header.semantics, last.first)
        run = replace(run, header=replace(run.header, semantics=begun))
        write_run(place, run)
        for name, text in imported.files.items():
            (place / name).write_text(text, encoding="utf-8")
        overwrite(place, target)
        return run.header.advanced_to


class _Last:
    """How far (ms) the elements that went by, and what their file said of time, have come, and their first time."""

    time = 0
    first: int | None = None

    def hear(self, time: int) -> None:
        self.time = max(self.time, time)

    def of(self, elements: Iterable[StreamElement]) -> Iterator[StreamElement]:
        for element in elements:
            self.hear(element.time)
            self.first = element.time if self.first is None else self.first
            yield element
