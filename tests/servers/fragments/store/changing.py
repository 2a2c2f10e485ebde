"""A program that changes a store on disk, step after step, each known from its number, and says which are done.

python -m tests.servers.fragments.store.changing FOLDER (change|load)
"""

import random
import sys
from pathlib import Path

from streamgauge.servers.fragments import ExpiringQuad, Quad
from streamgauge.servers.fragments.store import Keep
from streamgauge.servers.fragments.store.disk import DiskStore


def step(number: int) -> tuple[list[Quad], list[ExpiringQuad]]:
    """What the change of that number, from 1, takes out and puts in; it always changes something."""
    return [quad for quad, _ in _added(number - 3)], _added(number)


def _added(number: int) -> list[ExpiringQuad]:
    draws = random.Random(number)
    many = draws.choice((1, 5, 60))
    drawn = [(f"<urn:s{draws.randrange(500)}>", "<urn:p>", f'"{draws.randrange(50)}"', "") for _ in range(many)]
    return [((f"<urn:own{number}>", "<urn:p>", '"0"', f"<urn:g{number}>"), number), *((quad, None) for quad in drawn)]


def main() -> None:
    folder, what = sys.argv[1:]
    store = DiskStore(Path(folder), Keep(runs=1000))
    print(store.version, flush=True)
    if what == "load":
        store.load((item for number in range(1, 20_000) for item in _added(number)), at=0)
    while True:
        number = store.version + 1
        store.change(*step(number), at=number)
        print(number, flush=True)


if __name__ == "__main__":
    main()
