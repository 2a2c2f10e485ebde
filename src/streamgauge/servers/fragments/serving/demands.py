"""What a writer demands of the fragment that is written to (RFC 9110, 13.1): the page that its address shows."""

from collections.abc import Iterator
from typing import Final

from starlette.types import Scope

from streamgauge.servers.fragments.serving.asked import Asked, asked
from streamgauge.servers.fragments.serving.coding import CODINGS
from streamgauge.servers.fragments.serving.dataset import DataSet, Page
from streamgauge.servers.fragments.serving.formats import FORMATS
from streamgauge.servers.fragments.serving.freshness import http_time, tag
from streamgauge.servers.fragments.serving.requests import PLACES
from streamgauge.servers.fragments.serving.view import View
from streamgauge.servers.http.conditions import ANY, Conditions, PreconditionError, read_conditions

_DIGEST: Final = 18
"""Characters of a tag that are the digest of its content; the name of its format is the next one."""


def require(dataset: DataSet, scope: Scope, base: str) -> None:
    """PreconditionError when the fragment is not as a write demands.

    The fragment is that of the subject, predicate and object in the address. Any of its representations counts; one
    without quads is taken for none, so that If-None-Match: * writes only where nothing matches. The version of the data
    set, in quotes, is a tag of every fragment: a page of facts in graphs stays as it is when only their times change.
    """
    conditions = read_conditions(scope["headers"])
    since = dict(scope["headers"]).get(b"if-unmodified-since")
    if conditions == Conditions() and since is None:
        return
    names = tuple(place.encode() for place in PLACES)
    query = b"&".join(part for part in scope["query_string"].split(b"&") if part.partition(b"=")[0] in names)
    path = scope.get("raw_path") or str(scope["path"]).encode()
    wish = asked(path, query, dataset.shape, base, dataset.largest)
    page = dataset.page(wish.selection, wish.number, wish.limit)
    conditions.require(set(_tags(dataset, base, wish, page, conditions)), f"the fragment {wish.page:.200}")
    if conditions.match is None and since is not None and page.changed // 1000 > http_time(since):
        raise PreconditionError(f"If-Unmodified-Since does not hold: {wish.page:.200} has changed, nothing was done")


def _tags(dataset: DataSet, base: str, wish: Asked, page: Page, conditions: Conditions) -> Iterator[str]:
    """The tags of the page in each format that the conditions name, however it would be coded."""
    named = {each for each in (*(conditions.match or ()), *(conditions.none_match or ())) if each not in ANY}
    formats = {each.removeprefix("W/")[_DIGEST + 1 : _DIGEST + 2] for each in named}
    if page.total:
        yield f'"{dataset.version.decode()}"'
    for form in FORMATS:
        if page.total and form.name in formats:
            body = form.write(View(dataset, base, wish, page)).encode()
            for coding in ("", "i", *(name[:1] for name in CODINGS)):
                yield tag(body, form.name + coding).decode()
