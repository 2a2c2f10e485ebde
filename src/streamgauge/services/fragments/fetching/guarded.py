"""A client for what is fetched: its connections keep the rules of ``reach``."""

import httpx

from streamgauge.services.fragments.fetching.reach import RefusedError
from streamgauge.services.web import guarded
from streamgauge.services.web.guarded import Resolve, resolve


def guarded_client(resolving: Resolve = resolve) -> httpx.AsyncClient:
    """A client that refuses private addresses with a RefusedError; without cookies, proxies or credentials."""
    return guarded.guarded_client(RefusedError, resolving)
