"""What lasts is out of the reach of CPython's collector of garbage, which would stop everything to look at it."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Final

_NEVER: Final = 2**31 - 1
_ONE: Final = RLock()


@contextmanager
def lasting() -> Iterator[None]:
    """What is made meanwhile, and all that is there then, is not looked at again, until ``gc.unfreeze``.

    Only what is young is collected meanwhile. A full collection would let go of tables of texts, which come back among
    what is youngest, and are gone through there, with the next tuple that is put into them (``untrack_dicts`` in
    CPython's gcmodule.c). One thread at a time.
    """
    with _ONE:
        thresholds = gc.get_threshold()
        gc.set_threshold(*thresholds[:2], _NEVER)
        try:
            yield
        finally:
            gc.collect(1)
            gc.freeze()
            gc.set_threshold(*thresholds)
