"""The commands ``fragments serve`` and ``verify``: changing Linked Data as fragments over HTTP."""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from streamgauge.cli.configuration import long_running
from streamgauge.cli.options import chosen, method_names, milliseconds, one_named
from streamgauge.cli.servers import Connections, Host, SavedTo, add_group, reported, say
from streamgauge.cli.tokens import TokenFile
from streamgauge.formats.streams import Reading
from streamgauge.incremental.budget import gc_frozen
from streamgauge.model.phrases import counted
from streamgauge.servers.durability import end_with_sentence
from streamgauge.servers.fragments.annotations import named
from streamgauge.servers.fragments.labels import VOCABULARIES, Border, Label, Style
from streamgauge.servers.fragments.pages import FragmentShape
from streamgauge.servers.fragments.pages.dataset import DataSet
from streamgauge.servers.fragments.pages.http import application
from streamgauge.servers.fragments.pages.representations import FragmentLimits
from streamgauge.servers.fragments.store import Keep
from streamgauge.servers.fragments.store.disk import DiskStore
from streamgauge.servers.fragments.store.indexed import MemoryStore, Store
from streamgauge.servers.fragments.writes.feeds import BackgroundApp, DataSetFeed, FeedPace, FeedRunner
from streamgauge.servers.fragments.writes.files import load, name_of, refill
from streamgauge.servers.fragments.writes.http import WritesHandler
from streamgauge.servers.http.access import CrossOrigin, read_origins
from streamgauge.servers.http.headers import BaseAddress, HostError, fixed, of_host, of_proxy
from streamgauge.servers.http.server import Serving
from streamgauge.sources import open_source

_LATENESS = 2**53
"""Elements may come in any order, as facts have their own times."""


def named_feeds(texts: Sequence[str]) -> list[tuple[str, str]]:
    """(data set, URL) of each ``NAME=URL``; BadParameter."""
    pairs = [text.partition("=") for text in texts]
    for name, equals, url in pairs:
        if not name or not equals or not url or "/" in name:
            raise typer.BadParameter(f"{name}{equals}{url}: write NAME=URL", param_hint="--feed")
    return [(name, url) for name, _, url in pairs]


def open_feeds(
    feeds: Sequence[tuple[str, str]], datasets: Sequence[DataSet], pace: float | None, lasting: int | None
) -> list[FeedRunner]:
    """Open the feeds; their states are reported on standard error."""
    known = {dataset.name: dataset for dataset in datasets}
    paced = None if pace is None else FeedPace(pace)
    sources = [(known[name], open_source(url, Reading(lateness=_LATENESS))) for name, url in feeds]
    return [FeedRunner(DataSetFeed(dataset, source, paced, lasting), say) for dataset, source in sources]


UNLESS = FragmentLimits()


Period = Annotated[
    str | None, typer.Option(metavar="DURATION", help="Minimum time between changes of facts without an end: 60s.")
]
BorderOption = Annotated[Border, typer.Option(case_sensitive=False, help="Whether a fact holds at its final time.")]
Origins = Annotated[
    list[str] | None, typer.Option(metavar="ORIGIN", help="Allow only web pages of this origin (default: all).")
]
FeedFor = Annotated[
    str | None, typer.Option(metavar="DURATION", help="How long facts of feeds without an end hold: 10s.")
]
KeepFor = Annotated[
    str | None, typer.Option(metavar="DURATION", help="How long former facts are kept for requests with ?at=: 1d.")
]
History = Annotated[
    str | None, typer.Option(metavar="DURATION", help="How long facts with intervals are kept after their end: 1h.")
]


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    add_group(app, "fragments", "Changing Linked Data at low server cost.", serve, verify)


@long_running
def serve(
    data: Annotated[
        list[Path] | None, typer.Argument(metavar="DATA...", help="RDF files, each served at / and its name.")
    ] = None,
    host: Host = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 for a free one.")] = 4000,
    store: Annotated[Path | None, typer.Option(help="The folder for the data; without it they are in memory.")] = None,
    reload: Annotated[bool, typer.Option("--reload", help="Replace the data in --store by the files.")] = False,
    annotated: Annotated[str, one_named(method_names, "--method", help="How facts get times.")] = "graphs",
    label: Annotated[Label, typer.Option(case_sensitive=False, help="The kind of time annotation.")] = Label.EXPIRATION,
    vocabulary: Annotated[str, typer.Option(help="paper or prototype.")] = "paper",
    triples: Annotated[list[str] | None, typer.Option(help="Serve this data set as triples instead of quads.")] = None,
    period: Period = None,
    page_size: Annotated[int, typer.Option(min=1, max=10_000, help="Quads per page.")] = 100,
    base: Annotated[str | None, typer.Option(help="The server's address for clients.")] = None,
    behind_proxy: Annotated[bool, typer.Option("--behind-proxy", help="Trust Forwarded, X-Forwarded-*.")] = False,
    border: BorderOption = Border.EXCLUSIVE,
    token_file: Annotated[Path | None, typer.Option(help="Tokens for write access, one per line.")] = None,
    allow_origin: Origins = None,
    feed: Annotated[list[str] | None, typer.Option(help="NAME=URL: feed a data set from a stream.")] = None,
    pace: Annotated[float | None, typer.Option(min=1e-6, help="Replay feeds at this speed (1: real time).")] = None,
    feed_for: FeedFor = None,
    keep: KeepFor = None,
    history: History = None,
    max_address: Annotated[int, typer.Option(min=256, help="Maximum size of an address in bytes.")] = UNLESS.address,
    max_kept: Annotated[int, typer.Option(min=2**20, help="Maximum size of the page cache in bytes.")] = UNLESS.kept,
    max_body: Annotated[int, typer.Option(min=1024, help="Maximum size of a request's body in bytes.")] = UNLESS.body,
    max_connections: Connections = UNLESS.connections,
) -> None:
    """Serve files as Triple and Quad Pattern Fragments with the time for which they hold."""
    feeds, addressing = named_feeds(feed or ()), _addressing(base, behind_proxy)
    tokens = TokenFile(token_file, "127.0.0.1")  # other hosts would require a token, but only writes need one
    origins = read_origins(allow_origin or ("*",), tokens=True)
    style = replace(_style(annotated, label, vocabulary), border=border)
    if style.method == "implicit" and base is None and port == 0:
        raise typer.BadParameter("implicit graphs are named by the server's address: give --base or --port")
    past = None if keep is None else Keep(span=milliseconds(keep, "--keep"))
    _tell_of_store(store, reload)
    with gc_frozen():
        address = base or f"http://{host}:{port}"
        stores = _stores(data or (), [name for name, _ in feeds], store, past, style, address, reload)
        datasets = _datasets(stores, page_size, triples or (), milliseconds(period, "--period"))
    limits = FragmentLimits(address=max_address, body=max_body, kept=max_kept, connections=max_connections)
    feedings = open_feeds(feeds, datasets, pace, milliseconds(feed_for, "--feed-for"))
    writes = WritesHandler(tokens, addressing, limits.body)
    face = application(datasets, [writes], limits, addressing, partial(_statuses, feedings))
    passing = BackgroundApp(
        face, datasets, feedings, milliseconds(history, "--history") if history or past is None else 0
    )
    app = passing if origins.every else CrossOrigin(passing, origins)
    names = ", ".join(f"/{dataset.name}" for dataset in datasets)
    settings = {"date_header": False, "server_header": False}
    try:
        announce = partial(_say_where, names)
        Serving(
            app, host, port, face.leave, announce, max_connections, settings, alone=True, reload=tokens.reload
        ).run()
    finally:
        for dataset in datasets:
            dataset.store.close()


def verify(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A data set's folder within that of --store.")],
    save_to: SavedTo = None,
) -> None:
    """Check every page and record of a store without changing it; exit code 0 if it is sound, else 1."""
    from streamgauge.servers.fragments.store import recovery

    reported(folder, recovery.verify, recovery.save, save_to)


def _say_where(names: str, address: str) -> None:
    say(f"{names} at {address}")


def _statuses(feedings: Sequence[FeedRunner]) -> dict[str, dict[str, object]]:
    """The status of each feed by data set; further feeds of one are numbered."""
    counts: Counter[str] = Counter()
    statuses = {}
    for feeding in feedings:
        counts[feeding.name] += 1
        number = f" {counts[feeding.name]}" if counts[feeding.name] > 1 else ""
        statuses[f"{feeding.name}{number}"] = feeding.status()
    return statuses


def now() -> int:
    """The time, ms since 1970."""
    return time.time_ns() // 1_000_000


def _tell_of_store(store: Path | None, reload: bool) -> None:
    """BadParameter for --reload without a store; from now on a failing disk ends the program with a sentence."""
    if reload and store is None:
        raise typer.BadParameter("it needs a store: name its folder by --store", param_hint="--reload")
    if store is not None:
        end_with_sentence([store], f"check it by `streamgauge fragments verify {store}/NAME`")


def _stores(
    files: Sequence[Path],
    fed: Sequence[str],
    folder: Path | None,
    past: Keep | None,
    style: Style,
    address: str,
    again: bool,
) -> Iterator[tuple[str, Store, Style]]:
    """A store for each file, filled from it unless it has data, and an empty one for each other feed.

    ``again``: the file replaces the store's data.
    """
    names = [name_of(file) for file in files]
    only_fed = [(name, None) for name in dict.fromkeys(fed) if name not in names]
    for name, file in [*zip(names, files, strict=True), *only_fed]:
        if names.count(name) > 1:
            raise typer.BadParameter(f"two files have the data set name {name}: rename one", param_hint="DATA")
        # Graphs of the method ``implicit`` are named by the fragments' addresses.
        own = replace(style, template=f"{address}/{name}{{?subject,predicate,object}}")
        store: MemoryStore | DiskStore = MemoryStore(past) if folder is None else DiskStore(folder / name, past)
        if file is not None and store.version == 0:
            typer.echo(f"/{name}: {counted(load(file, store, own, now()), 'quad')} of {file}", err=True)
        elif file is not None and again:
            changes = refill(file, store, own, now())
            counts = f"{counted(len(changes.added), 'quad')} added, {len(changes.removed)} removed"
            typer.echo(f"/{name}: {counts} by {file}", err=True)
        elif store.version > 0:
            unread = f"; {file} is not read again (use --reload)" if file else ""
            typer.echo(f"/{name}: from {folder}{unread}", err=True)
        yield name, store, own


def _datasets(
    stores: Iterable[tuple[str, Store, Style]], page_size: int, triples: Sequence[str], period: int | None
) -> list[DataSet]:
    """The data sets; those named in ``triples`` are served without graphs."""
    shapes = dict.fromkeys(triples, FragmentShape.TRIPLES)
    datasets = [
        DataSet(name, store, style, now, page_size, shape=shapes.pop(name, FragmentShape.QUADS), period=period)
        for name, store, style in stores
    ]
    # Each data set took its own shape out: the names that are left belong to none.
    if shapes:
        raise typer.BadParameter(f"{', '.join(shapes)}: no such data set", param_hint="--triples")
    if not datasets:
        raise typer.BadParameter("nothing to serve: name a file, or a --feed", param_hint="DATA")
    return datasets


def _style(annotated: str, label: Label, vocabulary: str) -> Style:
    words = VOCABULARIES[chosen(vocabulary, VOCABULARIES, "--vocabulary")]
    return Style(named(annotated), label, words)


def _addressing(base: str | None, behind_proxy: bool) -> BaseAddress:
    if base is not None:
        try:
            return fixed(base)
        except HostError as error:
            raise typer.BadParameter(str(error), param_hint="--base") from error
    return of_proxy if behind_proxy else of_host
