"""Failures of outgoing requests: which of them a later try may mend."""

import socket
import ssl
from collections.abc import Iterator
from typing import Final

import httpx

from streamgauge.outgoing.clients import OversizedError

TRANSIENT: Final = frozenset((408, 425, 429, 500, 502, 503, 504))
"""Statuses after which the same request may succeed later."""

_ABSENT: Final = frozenset(
    code for name in ("EAI_NONAME", "EAI_NODATA") if (code := getattr(socket, name, None)) is not None
)
_NO_TLS: Final = frozenset(
    (
        "WRONG_VERSION_NUMBER",
        "HTTP_REQUEST",
        "UNSUPPORTED_PROTOCOL",
        "NO_PROTOCOLS_AVAILABLE",
        "TLSV1_ALERT_PROTOCOL_VERSION",
        "RECORD_LAYER_FAILURE",
    )
)
"""Why TLS cannot begin with what is not a server of it (``ssl.SSLError.reason``)."""


def permanent_failure(error: BaseException) -> str:
    """Why no later try succeeds, a sentence; empty where one may. Certificates, TLS, addresses and sizes count."""
    for each in _causes(error):
        if isinstance(each, ssl.SSLCertVerificationError):
            return f"its certificate is not trusted: {each.verify_message or each}"
        if isinstance(each, ssl.SSLError) and each.reason in _NO_TLS:
            return f"no TLS is spoken there: {each.reason.replace('_', ' ').lower()}"
        if isinstance(each, httpx.UnsupportedProtocol | httpx.InvalidURL):
            return f"no web address: {each}"
        if isinstance(each, OversizedError):
            return str(each)
    return ""


def unknown_host(error: BaseException) -> bool:
    """Whether the host's name is known nowhere: a mistake in an address, unless the name was known before."""
    return any(isinstance(each, socket.gaierror) and each.errno in _ABSENT for each in _causes(error))


def permanent_status(status: int) -> bool:
    """Whether the same request gets the same refusal later (RFC 9110, 15): 3xx, 4xx and 501, 505 but for TRANSIENT."""
    return status not in TRANSIENT and (300 <= status < 500 or status in (501, 505))


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and what led to it."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        each = waiting.pop()
        if each is not None and id(each) not in seen:
            seen.add(id(each))
            waiting += [each.__cause__, each.__context__]
            yield each
