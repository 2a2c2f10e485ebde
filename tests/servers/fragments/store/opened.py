"""A program that opens damaged stores: folders on standard input, for each a line of what became of it.

python -m tests.servers.fragments.store.opened

A store that reaches a damaged page through the memory map ends this program by a signal, which its caller sees.
"""

import json
import sys
from pathlib import Path

from streamgauge.servers.fragments.store import DamagedStoreError, Keep
from streamgauge.servers.fragments.store.disk import DiskStore, FolderError
from streamgauge.servers.fragments.store.indexed import Store
from tests.servers.fragments.store.changing import step

ALL = (None, None, None, None)


def answers(store: Store) -> object:
    """Everything that is asked of a store, as JSON."""
    quads = store.page(ALL, 0, 10**6)
    some = quads[:: max(1, len(quads) // 15)]
    matches = [(s, None, None, None) for s, *_ in some] + [(None, None, o, g) for _, _, o, g in some]
    return [
        store.version,
        sorted(quads),
        [store.count(match) for match in matches],
        [sorted(store.page(match, 0, 100)) for match in matches],
        [store.nearest(match, 3) for match in matches[:10]],
        sorted(store.expired(10**6, 10**6)),
        [sorted(store.at(ALL, instant, 10**6) or ()) for instant in range(0, store.version, 15)],
        [sorted(changed.added) for since in range(0, store.version, 6) if (changed := store.changed(ALL, since))],
        [store.count(("<urn:never>", None, None, None))],
    ]


def opened(folder: Path) -> dict[str, object]:
    """What a store answers, before and after it is changed, or the sentence by which it is refused."""
    try:
        store = DiskStore(folder, Keep(runs=1000))
    except (FolderError, DamagedStoreError) as error:
        return {"refused": str(error)}
    try:
        before = answers(store)
        for number in range(store.version + 1, store.version + 4):
            store.change(*step(number), at=number)
        return {"answers": [before, answers(store)]}
    except DamagedStoreError as error:
        return {"refused": str(error)}
    finally:
        store.close()


def main() -> None:
    for line in sys.stdin:
        print(json.dumps(opened(Path(line.rstrip("\n")))), flush=True)


if __name__ == "__main__":
    main()
