"""The command ``fragments serve``: changing Linked Data as fragments over HTTP."""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from streamgauge.services.fragments.annotations import method
from streamgauge.services.fragments.serving.addresses import Addressing, fixed, of_host, of_proxy
from streamgauge.services.fragments.serving.dataset import DataSet, Shape
from streamgauge.services.fragments.serving.face import application
from streamgauge.services.fragments.serving.limits import Limits
from streamgauge.services.fragments.serving.loading import load, name_of
from streamgauge.services.fragments.storing import Store
from streamgauge.services.fragments.storing.disk import DiskStore
from streamgauge.services.fragments.storing.memory import MemoryStore
from streamgauge.services.fragments.style import VOCABULARIES, Label, Style
from streamgauge.services.web.serving import Serving
from streamgauge.workloads.parameters import duration

UNLESS = Limits()


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    group = typer.Typer(help="Changing Linked Data at low server cost.", no_args_is_help=True)
    group.command("serve")(serve)
    group.callback()(_group)
    app.add_typer(group, name="fragments")


def _group() -> None:
    """Changing Linked Data at low server cost."""


def serve(
    data: Annotated[list[Path], typer.Argument(metavar="DATA...", help="RDF files; each is served at / + its name.")],
    host: Annotated[str, typer.Option(help="The address to bind to.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 for a free one.")] = 4000,
    store: Annotated[Path | None, typer.Option(help="The folder that keeps the data; in memory without it.")] = None,
    annotated: Annotated[str, typer.Option("--method", help="How facts with a time are written.")] = "graphs",
    label: Annotated[Label, typer.Option(help="What is said of their time.")] = Label.EXPIRATION,
    vocabulary: Annotated[str, typer.Option(help="paper or prototype.")] = "paper",
    triples: Annotated[list[str] | None, typer.Option(help="A data set to serve as triples, not quads.")] = None,
    period: Annotated[str | None, typer.Option(help="Facts without an end change no more often: 60s.")] = None,
    page_size: Annotated[int, typer.Option(min=1, max=10_000, help="Quads on a page.")] = 100,
    base: Annotated[str | None, typer.Option(help="The address that clients know the server by.")] = None,
    behind_proxy: Annotated[bool, typer.Option("--behind-proxy", help="Believe Forwarded, X-Forwarded-*.")] = False,
    max_address: Annotated[int, typer.Option(min=256, help="Bytes of a request's address.")] = UNLESS.address,
    max_kept: Annotated[int, typer.Option(min=2**20, help="Bytes of pages that are kept.")] = UNLESS.kept,
    max_connections: Annotated[int, typer.Option(min=1, help="Connections at once.")] = UNLESS.connections,
) -> None:
    """Serve files as Triple and Quad Pattern Fragments that say how long they hold."""
    style = _style(annotated, label, vocabulary)
    lasting = None if period is None else _period(period)
    shapes = dict.fromkeys(triples or (), Shape.TRIPLES)
    datasets = [
        DataSet(name, kept, style, now, page_size, shape=shapes.pop(name, Shape.QUADS), period=lasting)
        for name, kept in _stores(data, store, style)
    ]
    if shapes:
        raise typer.BadParameter(f"{', '.join(shapes)}: no such data set", param_hint="--triples")
    limits = Limits(address=max_address, kept=max_kept, connections=max_connections)
    face = application(datasets, limits=limits, addressing=_addressing(base, behind_proxy))
    names = ", ".join(f"/{dataset.name}" for dataset in datasets)
    settings = {"date_header": False, "server_header": False}
    try:
        Serving(
            face, host, port, face.leave, lambda at: typer.echo(f"{names} at {at}", err=True), max_connections, settings
        ).run()
    finally:
        for dataset in datasets:
            dataset.store.close()


def now() -> int:
    """The time, ms since 1970."""
    return time.time_ns() // 1_000_000


def _stores(files: Sequence[Path], folder: Path | None, style: Style) -> Iterator[tuple[str, Store]]:
    """A store for each file, filled from it unless it holds something already."""
    names = [name_of(file) for file in files]
    for name, file in zip(names, files, strict=True):
        if names.count(name) > 1:
            raise typer.BadParameter(f"two files give a data set {name}: rename one", param_hint="DATA")
        store: Store = MemoryStore() if folder is None else DiskStore(folder / name)
        if store.version == 0:
            typer.echo(f"/{name}: {load(file, store, style):,} quads of {file}", err=True)
        else:
            typer.echo(f"/{name}: as it is in {folder}, {file} is not read again", err=True)
        yield name, store


def _style(annotated: str, label: Label, vocabulary: str) -> Style:
    if vocabulary not in VOCABULARIES:
        raise typer.BadParameter(f"{vocabulary!r}: there are {', '.join(VOCABULARIES)}", param_hint="--vocabulary")
    method(annotated)
    return Style(annotated, label, VOCABULARIES[vocabulary])


def _period(text: str) -> int:
    try:
        return duration(text)
    except ValueError as error:
        raise typer.BadParameter(f"{text!r}: {error}", param_hint="--period") from error


def _addressing(base: str | None, behind_proxy: bool) -> Addressing:
    if base is not None:
        return fixed(base)
    return of_proxy if behind_proxy else of_host
