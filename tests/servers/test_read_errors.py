"""A disk that reports an error while a journal or a store is read: one sentence that names the disk, and no more."""

from contextlib import closing

import pytest

from streamgauge.servers.broker.sqlite import SqliteJournal
from streamgauge.servers.fragments.store.disk import DiskStore
from tests.servers.broker.world import BASE, broker, fact
from tests.servers.failing_reads import compiler, failing_programs
from tests.servers.fragments.store.changing import step
from tests.servers.fragments.store.opened import ALL

pytestmark = [pytest.mark.server, pytest.mark.skipif(compiler() is None, reason="no C compiler: cc is not there")]

FACTS = len(BASE) + 1000


@pytest.fixture(scope="module")
def failing(tmp_path_factory):
    with failing_programs(tmp_path_factory.mktemp("library")) as programs:
        yield programs


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kept")
    made = broker(journal=SqliteJournal(folder / "journal"))
    made.load([*BASE, *(fact(f"s{n}", "name", f'"{n}"') for n in range(1000))])
    made.close()
    store = DiskStore(folder / "store" / "one")
    for number in range(40):
        store.change(*step(number), at=number)
    store.close()
    (folder / "one.nt").write_text("<urn:t:a> <urn:t:b> <urn:t:c> .")
    return folder


def run(failing, file, first, end, *words):
    """The exit code and all that a command says where a file cannot be read from a byte to another."""
    code, out, err = failing.run(file, first, end, words)
    assert "Traceback" not in err, err
    return code, out + err


@pytest.mark.parametrize(
    ("name", "page"),
    [
        ("journal", 0),
        ("journal", 1),
        ("journal", 6),
        ("journal-mark", 0),
        ("data.mdb", 0),
        ("data.mdb", 12),
        ("held", 0),
    ],
)
def test_a_server_does_not_begin_and_says_so_in_a_sentence(failing, kept, name, page):
    words = ["broker", "serve", "--journal", str(kept / "journal"), "--port", "0"]
    file = kept / name
    if name in ("data.mdb", "held"):
        words = ["fragments", "serve", str(kept / "one.nt"), "--store", str(kept / "store"), "--port", "0"]
        file = kept / "store" / "one" / name
    code, said = run(failing, file, 4096 * page, 4096 * page + 1, *words)
    (line,) = said.splitlines()
    assert code == 2
    assert "the disk " in line
    assert str(file.parent) in line


@pytest.mark.parametrize(("page", "facts"), [(0, FACTS), (1, FACTS), (2, 0), (6, FACTS), (12, None)])
def test_the_rest_of_a_journal_is_saved(failing, kept, tmp_path, page, facts):
    """Page 2 is the root of the facts, page 12 has some of them."""
    file, new, at = kept / "journal", tmp_path / "new", 4096 * page
    code, said = run(failing, file, at, at + 1, "broker", "verify", str(file), "--save-to", str(new))
    assert code == 1
    assert f"journal, bytes {at:,} to {at + 4096:,}: the disk cannot read it" in said
    with closing(SqliteJournal(new)) as journal:
        saved = len(list(journal.facts()))
    assert saved == facts if facts is not None else FACTS // 2 < saved < FACTS


@pytest.mark.parametrize("page", [0, 1, 12])
def test_the_rest_of_a_store_is_saved(failing, kept, tmp_path, page):
    """One of the two first pages is enough; page 12 has remembered changes."""
    folder, new = kept / "store" / "one", tmp_path / "new"
    words = ["fragments", "verify", str(folder), "--save-to", str(new)]
    code, said = run(failing, folder / "data.mdb", 4096 * page, 4096 * page + 1, *words)
    assert code == 1
    assert f"page {page} (byte {4096 * page}): the disk cannot read it" in said
    with closing(DiskStore(new)) as store:
        assert len(store.page(ALL, 0, 1000)) > 100
