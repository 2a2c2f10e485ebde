"""CPython's garbage collector: objects that stay are taken out of its reach, as it would stop the process for them."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Final

_NEVER: Final = 2**31 - 1
_ONE: Final = RLock()


@contextmanager
def gc_frozen() -> Iterator[None]:
    """All objects that are there at the end of the block are not looked at again, until ``gc.unfreeze``.

    Only young objects are collected meanwhile. A full collection would untrack tables of texts, which come back among
    the youngest objects, and are gone through there, with the next tuple that is put into them (``untrack_dicts`` in
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
