"""A client for what is fetched: its connections keep the rules of ``reach``."""

import httpx

from streamgauge.servers.fragments.fetching.reach import RefusedError
from streamgauge.servers.http import guarded
from streamgauge.servers.http.guarded import Resolve, resolve


def guarded_client(resolving: Resolve = resolve) -> httpx.AsyncClient:
    """A client that refuses private addresses with a RefusedError; without cookies, proxies or credentials."""
    return guarded.guarded_client(RefusedError, resolving)
