"""Webhooks: each message is posted to an address, signed according to Standard Webhooks 1.0.

The signature is HMAC-SHA256 over ``ID.TIMESTAMP.BODY``, in base64, in the header ``webhook-signature`` (``v1,...``).
A receiver recomputes and compares it, refuses old timestamps, and drops ids that it has seen.
"""

import hmac
import time
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from random import Random

from streamgauge.sources.contract import Address, Sink, SourceError, read_options
from streamgauge.sources.decoders import Letter
from streamgauge.sources.posts import Post, PostOptions, PostSink

SCHEMES = ("webhook+http", "webhook+https")

MIN_SECRET_BYTES = 16
"""Minimum length of a secret, so that it cannot be guessed."""


@dataclass(frozen=True, slots=True)
class WebhookOptions(PostOptions):
    """A webhook: the media ``type`` of its messages, and the ``secret`` that signs them."""

    type: str = "application/json"
    secret: str | None = None


def open_sink(address: Address) -> Sink:
    """A sink that posts to an address; SourceError for a secret that is too short."""
    options = read_options(WebhookOptions, address)
    secret = None if options.secret is None else _secret(address, options.secret)
    return PostSink(address, options, partial(signed, options.type, secret, time.time), Random())


def _secret(address: Address, text: str) -> bytes:
    """The bytes of a secret: base64 after ``whsec_``, else the text."""
    try:
        secret = b64decode(text[6:], validate=True) if text.startswith("whsec_") else text.encode()
    except Base64Error as error:
        raise SourceError(f"{address.text}: the secret is not base64 after whsec_: {error}") from error
    if len(secret) < MIN_SECRET_BYTES:
        raise SourceError(f"{address.text}: the secret is shorter than {MIN_SECRET_BYTES} bytes: use a longer one")
    return secret


def signed(kind: str, secret: bytes | None, clock: Callable[[], float], letter: Letter) -> Post:
    """The request of a message; without a key its id is a digest of the body, so that a repetition has the same id."""
    # The line end is that of JSON lines, not a part of the message that is signed.
    body = letter.message.rstrip(b"\n")
    name = letter.key or sha256(body).hexdigest()[:32]
    stamp = str(int(clock()))
    headers = {"Content-Type": kind, "Idempotency-Key": name, "webhook-id": name, "webhook-timestamp": stamp}
    if secret is not None:
        digest = hmac.new(secret, f"{name}.{stamp}.".encode() + body, sha256).digest()
        headers["webhook-signature"] = f"v1,{b64encode(digest).decode()}"
    return Post(body, headers)
