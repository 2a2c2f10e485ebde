"""A page of a mapped file that cannot be read any more: the process ends with a sentence, not by a signal.

The kernel tells a process by SIGBUS, in the midst of a read, of a file that was cut short while it is mapped and of a
disk that fails under it. There is no answer to that: neither can the read be undone nor its thread go on. CPython's own
handlers of signals would run after the read, which never ends, so this one is set in C. It runs on the thread that
reads, takes the interpreter's lock, writes, and ends the process; what was acknowledged is on the disk.
"""

import ctypes
import os
from collections.abc import Sequence
from pathlib import Path
from signal import SIGBUS
from typing import Any, Final

STATUS: Final = 2
"""The exit code."""

_HANDLERS: list[Any] = []
"""The handler that is set, kept for as long as the process lives."""


def end_with_sentence(folders: Sequence[Path], advice: str) -> None:
    """From now on a lost page of a file in one of the folders ends the process; ``advice`` says what to do then."""
    said = f"{', '.join(map(str, folders))}: a part of what is kept there cannot be read any more"
    said += f" (a file was cut short, or the disk fails): the server ends; {advice}\n"
    line = said.encode()

    def end(_signal: int) -> None:
        os.write(2, line)
        os._exit(STATUS)

    handler = ctypes.CFUNCTYPE(None, ctypes.c_int)(end)
    _HANDLERS[:] = [handler]
    setter = ctypes.CDLL(None).signal
    setter.argtypes, setter.restype = (ctypes.c_int, ctypes.c_void_p), ctypes.c_void_p
    setter(SIGBUS, ctypes.cast(handler, ctypes.c_void_p))
