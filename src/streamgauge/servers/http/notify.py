"""Messages to a service manager, as systemd's ``sd_notify(3)`` has them: ready, reloading, stopping, and still alive.

Without the variable ``NOTIFY_SOCKET`` nothing is sent.
"""

import os
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from time import monotonic
from typing import Final

_SHARE: Final = 3
"""Signs of life within the time after which the manager takes the service for dead."""


class ServiceManager:
    """The manager that started this process, if one did; ``beat`` may be called as often as one likes."""

    def __init__(self, environment: Mapping[str, str] = os.environ, clock: Callable[[], float] = monotonic) -> None:
        self._address, self._clock, self._next = environment.get("NOTIFY_SOCKET", ""), clock, 0.0
        mine = environment.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        micros = environment.get("WATCHDOG_USEC", "") if mine else ""
        self._every = int(micros) / 1e6 / _SHARE if micros.isdecimal() else None

    def tell(self, *assignments: str) -> None:
        """Send assignments such as ``READY=1``; a manager that does not listen is not a fault of the service."""
        if not self._address:
            return
        address = f"\0{self._address[1:]}" if self._address.startswith("@") else self._address
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
            sender.sendto("\n".join(assignments).encode(), address)

    def beat(self) -> None:
        """Show that the service is alive, when a sign is due."""
        if self._every is not None and self._clock() >= self._next:
            self._next = self._clock() + self._every
            self.tell("WATCHDOG=1")
