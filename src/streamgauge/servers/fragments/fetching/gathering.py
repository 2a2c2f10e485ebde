"""What several responses say together."""

from collections.abc import Sequence
from hashlib import sha1

from streamgauge.servers.fragments.fetching.cache import Response
from streamgauge.servers.fragments.fetching.contract import Fetched
from streamgauge.servers.fragments.quads import Quad


def state(response: Response) -> str:
    """What changes when the body does."""
    known = response.made.get("state")
    if not isinstance(known, str):
        known = response.made["state"] = sha1(response.body, usedforsecurity=False).hexdigest()
    return known


def gathered(quads: tuple[Quad, ...], responses: Sequence[Response]) -> Fetched:
    """Quads with the times and versions of the responses that they are from."""
    versions = {response.version for response in responses}
    digest = sha1(" ".join(map(state, responses)).encode(), usedforsecurity=False).hexdigest()
    return Fetched(
        quads,
        min(response.at for response in responses),
        min((response.until for response in responses if response.until is not None), default=None),
        digest,
        versions.pop() if len(versions) == 1 else None,
    )
