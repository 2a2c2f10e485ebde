"""Messages that are under way: a bounded number, counted until they are acknowledged or given up."""

from collections.abc import Callable
from threading import Condition

from streamgauge.sources.contract import Delivery


class Pending:
    """Counts messages under way, at most ``room``; who hands over another waits for at most ``patience`` seconds."""

    def __init__(self, room: int, patience: float) -> None:
        self._room = room
        self._patience = patience
        self._changed = Condition()
        self._under_way = 0
        self._sent = 0
        self._lost = 0
        self._why: str | None = None

    def enter(self) -> bool:
        """Whether there is room for one more, waited for; without room the message counts as undelivered."""
        with self._changed:
            if self._changed.wait_for(lambda: self._under_way < self._room, self._patience):
                self._under_way += 1
                return True
            self._fail(f"{self._room} messages were under way for more than {self._patience:g} s")
            return False

    def delivered(self) -> None:
        """One was acknowledged."""
        with self._changed:
            self._under_way -= 1
            self._sent += 1
            self._changed.notify_all()

    def lost(self, why: str) -> None:
        """One that was under way will not arrive."""
        with self._changed:
            self._under_way -= 1
            self._fail(why)
            self._changed.notify_all()

    def refuse(self, why: str) -> None:
        """One was not even taken."""
        with self._changed:
            self._fail(why)

    def drain(self, still: Callable[[], str]) -> Delivery:
        """Wait until nothing is under way, as long as ``patience``; the rest is undelivered, ``still`` says why."""
        with self._changed:
            self._changed.wait_for(lambda: not self._under_way, self._patience)
            if self._under_way:
                self._why = self._why or still()
            return Delivery(self._sent, self._lost + self._under_way, self._why)

    def _fail(self, why: str) -> None:
        self._lost += 1
        self._why = self._why or why
