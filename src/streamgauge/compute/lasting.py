"""What lasts is out of the reach of CPython's collector of garbage, which would stop everything to look at it."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def lasting() -> Iterator[None]:
    """What is made meanwhile, and all that is there then, is not looked at again, until ``gc.unfreeze``.

    No full collection runs meanwhile: it would let go of tables of texts, which come back among what is youngest, and
    are gone through there, with the next tuple that is put into them (``untrack_dicts`` in CPython's gcmodule.c).
    """
    ran = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.collect(1)
        gc.freeze()
        if ran:
            gc.enable()
