"""How deep calls may be while a query is read."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_CALLS: Final = 10_000


@contextmanager
def deep() -> Iterator[None]:
    """Allow ``_CALLS`` Python calls in each other: Pyparsing takes some thirty for one level of brackets.

    The limit is the whole process's. It is raised by the first thread that is here and put back by the last one.
    """
    with _LIMIT:
        yield


class _CallLimit:
    """The limit of recursion while threads need more of it."""

    def __init__(self) -> None:
        self._lock, self._users, self._before = threading.Lock(), 0, 0

    def __enter__(self) -> None:
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._before = sys.getrecursionlimit()
                sys.setrecursionlimit(max(self._before, _CALLS))

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._users -= 1
            if not self._users:
                sys.setrecursionlimit(self._before)


_LIMIT: Final = _CallLimit()
