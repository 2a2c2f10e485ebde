"""Messages to a service manager by systemd's ``sd_notify(3)``: ready, stopping, still alive.

Without the variable ``NOTIFY_SOCKET`` nothing is sent.
"""

import os
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from time import monotonic
from typing import Final

_SHARE: Final = 3
"""Signs of life per watchdog interval."""


class ServiceManager:
    """The manager that started this process, if any."""

    def __init__(self, environment: Mapping[str, str] = os.environ, clock: Callable[[], float] = monotonic) -> None:
        self._address, self._clock, self._next = environment.get("NOTIFY_SOCKET", ""), clock, 0.0
        # A child inherits the variables, but the watchdog is meant for the process named in WATCHDOG_PID only.
        mine = environment.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        micros = environment.get("WATCHDOG_USEC", "") if mine else ""
        self._every = int(micros) / 1e6 / _SHARE if micros.isdecimal() else None

    def tell(self, *assignments: str) -> None:
        """Send assignments such as ``READY=1``; errors are ignored, since the service runs without its manager."""
        if not self._address:
            return
        # A leading @ stands for the NUL byte of Linux's abstract sockets.
        address = f"\0{self._address[1:]}" if self._address.startswith("@") else self._address
        # A socket per message: a manager that was restarted has a new one at the same address.
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
            sender.sendto("\n".join(assignments).encode(), address)

    def beat(self) -> None:
        """Send a sign of life if one is due; may be called at any rate."""
        if self._every is not None and self._clock() >= self._next:
            self._next = self._clock() + self._every
            self.tell("WATCHDOG=1")
