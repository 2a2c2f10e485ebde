"""Each rule that LMDB relies on, broken by hand: the page and the rule are named, and LMDB never sees the file."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from struct import pack_into, unpack_from

import pytest

from streamgauge.servers.fragments.store.disk import DiskStore, FolderError
from streamgauge.servers.fragments.store.lmdb_file import LmdbFile, MetaPage, Overflow, PageError
from tests.servers.fragments.store.changing import step

PAGE = 4096
TREES = 40
"""Where in a meta page the trees are; one has 48 bytes."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store")
    store = DiskStore(folder)
    store.load(item for number in range(1, 60) for item in step(number)[1])
    for number in range(60, 66):
        store.change(*step(number))
    store.close()
    return folder


class Pages:
    """A store's file in memory, to be changed, and where things are in it."""

    def __init__(self, folder: Path) -> None:
        self.data = bytearray((folder / "data.mdb").read_bytes())
        with closing(LmdbFile(folder / "data.mdb")) as file:
            self.meta: MetaPage = file.meta()
            leaves = [(number, records) for number, records in file.live_leaves(self.meta)]
            self.free = sorted(file.free(self.meta), reverse=True)
        self.leaves = [number for number, records in leaves if not isinstance(records, PageError)]
        self.large = next(
            value.page
            for _, records in leaves
            if not isinstance(records, PageError)
            for _, value in records
            if isinstance(value, Overflow)
        )
        self.leaf = max(self.leaves, key=lambda number: unpack_from("<H", self.data, number * PAGE + 12))

    def put(self, page: int, at: int, form: str, *values: int) -> None:
        pack_into(f"<{form}", self.data, page * PAGE + at, *values)

    def get(self, page: int, at: int, form: str) -> int:
        (value,) = unpack_from(f"<{form}", self.data, page * PAGE + at)
        return int(value)


def swap_leaves(file: Pages) -> None:
    one, two = (number * PAGE for number in file.leaves[:2])
    data = file.data
    data[one : one + PAGE], data[two : two + PAGE] = data[two : two + PAGE], data[one : one + PAGE]


def swap_nodes(file: Pages) -> None:
    one, two = file.get(file.leaf, 16, "H"), file.get(file.leaf, 18, "H")
    file.put(file.leaf, 16, "HH", two, one)


def repeat_node(file: Pages) -> None:
    file.put(file.leaf, 18, "H", file.get(file.leaf, 16, "H"))


def reach_beyond(file: Pages) -> None:
    file.put(file.leaf, file.get(file.leaf, 16, "H") + 6, "H", 5000)


def free_a_live_page(file: Pages) -> None:
    """The smallest page in a list becomes the page of a leaf, which is smaller still."""
    root = file.meta.free.root
    offset = file.get(root, 16, "H")
    at = offset + 8 + 8
    many = file.get(root, at, "Q")
    assert many
    file.put(root, at + 8 * many, "Q", min(file.leaves))
    assert many == 1 or file.get(root, at + 8 * (many - 1), "Q") > min(file.leaves)


def reverse_a_free_list(file: Pages) -> None:
    root = file.meta.free.root
    at = file.get(root, 16, "H") + 16
    assert file.get(root, at, "Q") > 1
    file.put(root, at + 8, "Q", 2)


RULES: dict[str, Callable[[Pages], None]] = {
    "its header has the number": swap_leaves,
    "its flags are": lambda file: file.put(file.leaf, 10, "H", 0x12),
    "the offsets of its nodes are damaged": lambda file: file.put(file.leaf, 12, "H", 17),
    "the offset of a node is damaged": lambda file: file.put(file.leaf, 16, "H", 18),
    "a node reaches beyond it": reach_beyond,
    "its nodes overlap": repeat_node,
    "its keys are not in order": swap_nodes,
    "not the beginning of a value's own pages": lambda file: file.put(file.large, 12, "I", 3),
    "it is used twice": free_a_live_page,
    "a list of free pages is damaged": reverse_a_free_list,
    "other numbers of pages or records": lambda file: file.put(file.meta.page, TREES + 48 + 32, "Q", 7),
    "other flags or another depth": lambda file: file.put(file.meta.page, TREES + 48 + 4, "H", 4),
    "the last page is": lambda file: file.put(file.meta.page, TREES + 96, "Q", file.large - 1),
    "the last page is 1048576": lambda file: file.put(file.meta.page, TREES + 96, "Q", 1 << 20),
    "no meta page of LMDB": lambda file: file.put(0, 16, "I", 1),
    "is never written here": lambda file: file.put(file.meta.page, TREES + 104, "Q", file.meta.transaction + 1),
    "the file ends before it": lambda file: file.data.__delitem__(slice(file.leaf * PAGE + 100, None)),
}


@pytest.mark.parametrize("message", RULES)
def test_a_broken_rule_is_named(whole: Path, tmp_path: Path, message: str) -> None:
    file = Pages(whole)
    RULES[message](file)
    (tmp_path / "data.mdb").write_bytes(file.data)
    with pytest.raises(FolderError, match=rf"data\.mdb: damaged: page \d+ \(byte \d+\): .*{message}"):
        DiskStore(tmp_path)


def test_a_whole_file_breaks_none(whole: Path) -> None:
    with closing(LmdbFile(whole / "data.mdb")) as file:
        meta = file.meta()
        keys = [key for records in file.leaves(meta) for key, _ in records]
    assert keys == sorted(set(keys))
    assert len(keys) == meta.main.entries
