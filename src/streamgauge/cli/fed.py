"""Feeds of data sets, as the command line names them."""

from collections.abc import Sequence

import typer

from streamgauge.formats.streams import Reading
from streamgauge.servers.fragments.pages.dataset import DataSet
from streamgauge.servers.fragments.writes.feeds import DataSetFeed, FeedPace, FeedRunner
from streamgauge.sources import open_source

_LATENESS = 2**53
"""Elements may come in any order: facts say themselves when they hold."""


def named_feeds(given: Sequence[str]) -> list[tuple[str, str]]:
    """(data set, URL) of each ``NAME=URL``."""
    pairs = [each.partition("=") for each in given]
    for name, equals, url in pairs:
        if not name or not equals or not url or "/" in name:
            raise typer.BadParameter(f"{name}{equals}{url}: write NAME=URL", param_hint="--feed")
    return [(name, url) for name, _, url in pairs]


def open_feeds(
    feeds: Sequence[tuple[str, str]], datasets: Sequence[DataSet], pace: float | None, lasting: int | None
) -> list[FeedRunner]:
    """The feeds opened; what becomes of each is said on standard error."""
    known = {dataset.name: dataset for dataset in datasets}
    paced = None if pace is None else FeedPace(pace)
    sources = [(known[name], open_source(url, Reading(lateness=_LATENESS))) for name, url in feeds]
    return [FeedRunner(DataSetFeed(dataset, source, paced, lasting), _say) for dataset, source in sources]


def _say(sentence: str) -> None:
    typer.echo(sentence, err=True)
