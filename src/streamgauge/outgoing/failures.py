"""Failures of outgoing requests: which are transient, and which are permanent."""

import socket
import ssl
from collections.abc import Iterator
from typing import Final

import httpx

from streamgauge.outgoing.clients import OversizedError

TRANSIENT: Final = frozenset((408, 425, 429, 500, 502, 503, 504))
"""Statuses after which the same request may succeed later."""

# EAI_NODATA is not defined on every system. EAI_AGAIN is left out: the resolver may know the name later.
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
"""Reasons (``ssl.SSLError.reason``) that show that the server does not speak TLS."""


def permanent_failure(error: BaseException) -> str:
    """Why a retry is pointless, as a sentence; empty if it may succeed. For certificates, TLS, addresses, sizes."""
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"its certificate is not trusted: {cause.verify_message or cause}"
        # Other errors of TLS, such as a connection that ends during the handshake, may pass.
        if isinstance(cause, ssl.SSLError) and cause.reason in _NO_TLS:
            return f"no TLS is spoken there: {cause.reason.replace('_', ' ').lower()}"
        if isinstance(cause, httpx.UnsupportedProtocol | httpx.InvalidURL):
            return f"not a web address: {cause}"
        if isinstance(cause, OversizedError):
            return str(cause)
    return ""


def unknown_host(error: BaseException) -> bool:
    """Whether the host name does not exist, which is a mistake in the address unless the name resolved before."""
    return any(isinstance(cause, socket.gaierror) and cause.errno in _ABSENT for cause in _causes(error))


def permanent_status(status: int) -> bool:
    """Whether a repeated request would be refused again (RFC 9110, 15): 3xx, 4xx, 501, 505, except TRANSIENT."""
    return status not in TRANSIENT and (300 <= status < 500 or status in (501, 505))


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and its chain of causes."""
    # Chains of causes may have cycles.
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        cause = waiting.pop()
        if cause is not None and id(cause) not in seen:
            seen.add(id(cause))
            # httpx wraps httpcore's error, which wraps the socket's: the reason is at the end of either chain.
            waiting += [cause.__cause__, cause.__context__]
            yield cause
