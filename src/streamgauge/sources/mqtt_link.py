"""A connection to an MQTT 5 broker that reconnects whenever it is lost."""

import os
import select
import socket
import ssl
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from random import Random
from threading import Event, Thread
from time import monotonic
from types import ModuleType
from typing import Any, Protocol

from streamgauge.model.extras import missing
from streamgauge.model.mistake import obstacle
from streamgauge.sources.backoff import Backoff
from streamgauge.sources.contract import Address, SourceError

TICK_S = 0.2
"""Polling interval (s) of the thread for its end and for keep-alive pings."""
_PORTS = {"mqtt": 1883, "mqtts": 8883}
_KEEP_ALIVE = 30
_PARTING = 2.0
"""Seconds that the broker has to close the connection after our DISCONNECT."""
_PERMANENT = {0x85, 0x86, 0x87, 0x8C}
"""Reason codes of MQTT 5 (3.2.2.2) that a retry cannot change: client identifier, password, rights, method."""


@dataclass(frozen=True, slots=True)
class MqttSession:
    """The broker's session of a disconnected client: it expires after ``expiry`` s; 0 starts clean each time.

    ``room`` is the maximum number of unacknowledged messages; ``lasting`` sessions are kept after DISCONNECT.
    """

    client: str
    expiry: int
    room: int = 65_535
    lasting: bool = False


class LinkOwner(Protocol):
    """The owner of a link, which calls these methods in its thread."""

    def prepare(self, client: Any) -> None:
        """Set callbacks before connecting."""

    def connected(self, client: Any, known: bool) -> None:
        """Handle a new connection; ``known`` if the broker still has the session."""

    def work(self, client: Any) -> None:
        """Send the packets that wait."""


class Link:
    """A connection to an MQTT 5 broker that reconnects whenever it is lost, in a thread of its own.

    Each connection has a new paho client. The owner has the state that outlives a connection: ``wake`` schedules its
    ``work``, ``close`` disconnects.
    """

    def __init__(
        self, address: Address, session: MqttSession, owner: LinkOwner, random: Random, ca: str | None
    ) -> None:
        self._address = address
        self._session = session
        self._owner = owner
        self._ca = ca
        self._backoff = Backoff(random)
        self._closing = Event()
        self._granted = Event()
        self._lost_at: float | None = monotonic()
        self._woken, self._wake = socket.socketpair()
        self._thread = Thread(target=self._run, name=f"mqtt {address.host}", daemon=True)
        self.fault: str | None = None
        self.largest: int | None = None  # the broker's maximum packet size, bytes
        self.trouble = "no broker responds"

    def open(self, patience: float) -> None:
        """Connect and wait until ``grant`` or ``fail``; SourceError with the reason."""
        client_library(self._address)
        self._thread.start()
        if not self._granted.wait(patience) or self.fault:
            self.close()
            raise SourceError(f"{self._address.text}: {self.fault or self.trouble}")

    def grant(self) -> None:
        """Record that the broker granted the requests made after connecting."""
        self._backoff.reset()
        self._granted.set()

    def fail(self, why: str) -> None:
        """Record a permanent refusal by the broker, and stop reconnecting."""
        self.fault = why
        self._closing.set()
        self._granted.set()

    def away(self) -> float:
        """Seconds since the connection was lost, 0 while connected."""
        lost_at = self._lost_at
        return 0.0 if lost_at is None else monotonic() - lost_at

    def wake(self) -> None:
        """Schedule the owner's ``work`` in the link's thread."""
        # A full buffer already has a byte that wakes the thread; a closed one has no thread to wake.
        with suppress(BlockingIOError, OSError):
            self._wake.send(b"x", socket.MSG_DONTWAIT)

    def close(self) -> None:
        """Send DISCONNECT and stop the thread."""
        self._closing.set()
        self.wake()
        self._thread.join()
        self._woken.close()
        self._wake.close()

    def _run(self) -> None:
        while not self._closing.is_set():
            try:
                self._connection()
            # A kind of OSError that a retry does not change.
            except ssl.SSLCertVerificationError as error:
                self.fail(f"the broker's certificate is not trusted: {error}")
            except OSError as error:
                self.trouble = obstacle(error)
            except Exception as error:
                self.fail(f"the client failed: {error!r}")
                raise
            if self._lost_at is None:
                self._lost_at = monotonic()
            self._closing.wait(self._backoff.next())

    def _connection(self) -> None:
        """One connection, from CONNECT to its end."""
        paho = client_library(self._address)
        # ``manual_ack``: paho would acknowledge a message when its callback returns, before the query has read it.
        version, protocol = paho.CallbackAPIVersion.VERSION2, paho.MQTTv5
        client = paho.Client(version, self._session.client, protocol=protocol, manual_ack=True)
        client.on_connect = self._connected
        client.connect_timeout = 5.0
        if self._address.user is not None:
            client.username_pw_set(self._address.user, self._address.password)
        if self._address.scheme == "mqtts":
            client.tls_set(self._ca)
        self._owner.prepare(client)
        connect_properties = properties(
            "CONNECT", SessionExpiryInterval=self._session.expiry, ReceiveMaximum=self._session.room
        )
        port = self._address.port or _PORTS[self._address.scheme]
        clean = self._session.expiry == 0
        client.connect(self._address.host, port, _KEEP_ALIVE, clean_start=clean, properties=connect_properties)
        try:
            self._serve(client)
        finally:
            client.on_socket_close = None
            if client.socket() is not None:
                client.socket().close()

    def _serve(self, client: Any) -> None:
        while not self._closing.is_set():
            if self._step(client):
                self.trouble = "the connection to the broker was lost"
                return
        if self._lost_at is None:
            self._farewell(client)

    def _farewell(self, client: Any) -> None:
        """Send pending packets and DISCONNECT, then read the input to its end before closing."""
        self._owner.work(client)
        lasting, sock = self._session.lasting, client.socket()
        if sock is None:
            return
        with socket.socket(fileno=os.dup(sock.fileno())) as duplicate:
            client.disconnect(properties=None if lasting else properties("DISCONNECT", SessionExpiryInterval=0))
            client.loop_write()
            duplicate.settimeout(_PARTING)
            # A close with unread input resets the connection (RFC 1122, 4.2.2.13), which may discard the DISCONNECT. So
            # the input is read up to its end, on a duplicate that paho does not close.
            duplicate.shutdown(socket.SHUT_WR)
            while duplicate.recv(65_536):
                pass

    def _step(self, client: Any) -> int:
        """One round of reading, writing and work; 0, as paho's success code, while the connection is open."""
        sock = client.socket()
        if sock is None:
            return 1
        # ``select`` sees the socket only: bytes in the TLS layer would wait for the next packet from the network.
        buffered = getattr(sock, "pending", lambda: 0)()  # what TLS has decrypted already
        wanted = [sock] if client.want_write() else []
        readable, writable, _ = select.select([sock, self._woken], wanted, [], 0 if buffered else TICK_S)
        if self._woken in readable:
            self._woken.recv(4096)
        rc = client.loop_read() if buffered or sock in readable else 0
        # Before CONNACK it is unknown whether the broker has the session, and so which messages must be sent again.
        if not rc and self._lost_at is None:
            self._owner.work(client)
        if not rc and writable:
            rc = client.loop_write()
        return int(rc or client.loop_misc())

    def _connected(self, client: Any, _data: Any, flags: Any, reason: Any, properties_: Any) -> None:
        if not reason.is_failure:
            self.largest = getattr(properties_, "MaximumPacketSize", None)
            self._lost_at = None
            self._owner.connected(client, flags.session_present)
        elif reason.value in _PERMANENT:
            self.fail(f"the broker refuses: {reason}")
        else:
            self.trouble = f"the broker refuses: {reason}"


def client_library(address: Address) -> ModuleType:
    """Paho's client module; SourceError says how to install it."""
    if lack := missing("mqtt"):
        raise SourceError(f"{address.text}: {lack}")
    return import_module("paho.mqtt.client")


def properties(packet: str, **values: object) -> Any:
    """Properties of an MQTT 5 packet."""
    types, module = import_module("paho.mqtt.packettypes"), import_module("paho.mqtt.properties")
    properties = module.Properties(getattr(types.PacketTypes, packet))
    for name, value in values.items():
        setattr(properties, name, value)
    return properties
