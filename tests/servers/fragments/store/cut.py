"""A program that reads a store whose file is cut short while it is mapped: ``python -m ... FOLDER``."""

import os
import sys
from pathlib import Path

from streamgauge.servers.durability.lost_pages import end_with_sentence
from streamgauge.servers.fragments.store.disk import DiskStore

ALL = (None, None, None, None)


def main() -> None:
    folder = Path(sys.argv[1])
    end_with_sentence([folder], "look at it by `streamgauge fragments verify`")
    store = DiskStore(folder)
    store.change((), [((f"<urn:s{n}>", "<urn:p>", f'"{n}"', ""), None) for n in range(20_000)])
    os.truncate(folder / "data.mdb", 8192)
    print(len(store.page(ALL, 0, 20_000)))


if __name__ == "__main__":
    main()
