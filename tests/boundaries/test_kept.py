"""Files that servers keep are for the user who runs them; what goes wrong in writing them is told by ``/health``."""

import errno
import json
import os
import stat

import lmdb
import pytest

from streamgauge.cli.servers import tell_readers
from streamgauge.servers.broker.sqlite import SqliteJournal
from streamgauge.servers.durability import copy_readable
from streamgauge.servers.fragments.labels import Style
from streamgauge.servers.fragments.pages.dataset import DataSet
from streamgauge.servers.fragments.pages.http import application
from streamgauge.servers.fragments.store import FullError
from streamgauge.servers.fragments.store import disk as disk_module
from streamgauge.servers.fragments.store.disk import DiskStore
from streamgauge.servers.fragments.store.indexed import MemoryStore
from tests.servers.broker.served import TURTLE, Client
from tests.servers.broker.world import broker
from tests.servers.fragments.pages.sockets import PLAIN, ask, listening


@pytest.fixture
def open_umask():
    before = os.umask(0)
    yield
    os.umask(before)


def modes(folder):
    return {file.name: stat.S_IMODE(file.stat().st_mode) for file in folder.rglob("*")}


@pytest.mark.usefixtures("open_umask")
def test_journals_and_stores_are_for_their_user_alone(tmp_path):
    (tmp_path / "kept").mkdir()
    made = broker(journal=SqliteJournal(tmp_path / "kept" / "journal"))
    made.create_channel("c", "SELECT * { ?s ?p ?o }")
    copy_readable(tmp_path / "kept" / "journal", tmp_path / "kept" / "copy")
    store = DiskStore(tmp_path / "kept" / "store")
    result = modes(tmp_path / "kept")
    store.close()
    made.close()
    assert result.pop("store") == 0o700
    assert len(result) >= 6
    assert set(result.values()) == {0o600}, result


@pytest.mark.parametrize(("mode", "told"), [(0o600, False), (0o644, True), (0o640, True)])
def test_a_file_of_tokens_that_others_can_read_is_told(tmp_path, mode, told, capsys):
    file = tmp_path / "tokens"
    file.write_text("sixteen-letters-or-more\n")
    file.chmod(mode)
    tell_readers(file)
    assert (f"{file} can be read by other users of this machine: chmod 600" in capsys.readouterr().err) is told


@pytest.mark.server
def test_fragments_are_not_ready_when_changes_are_refused(tmp_path, monkeypatch):
    store = DiskStore(tmp_path / "store")
    dataset = DataSet("data", store, Style(), lambda: 1_000_000, 100)
    health = PLAIN.replace(PLAIN.split(b" ")[1], b"/ready")
    quad = ("<urn:a>", "<urn:b>", "<urn:c>", "")

    def status(port):
        answer = ask(port, health)
        return int(answer.split()[1]), json.loads(answer.partition(b"\r\n\r\n")[2])

    with listening(application([dataset])) as port:
        assert status(port) == (200, {"status": "ready", "fault": "", "sources": {}})
        with monkeypatch.context() as full:
            full.setattr(disk_module, "_write", lambda *_: (_ for _ in ()).throw(lmdb.DiskError("no space")))
            full.setattr(disk_module, "probe", lambda _: errno.ENOSPC)
            with pytest.raises(FullError):
                store.change([], [(quad, None)])
            code, said = status(port)
            assert (code, said["status"]) == (503, "not ready")
            assert "the change was not made" in said["fault"]
        assert status(port)[0] == 200, "the disk takes files again"
    store.close()


def test_an_error_of_our_own_is_no_mistake_of_the_client(monkeypatch):
    made = broker()

    def fail(*_args, **_options):
        raise ValueError("internal")

    with Client(made) as ask_broker:
        monkeypatch.setattr(made, "submit", fail)
        with pytest.raises(ValueError, match="internal"):  # the server logs it and answers 500
            ask_broker("POST", "/publish", content="<urn:a> <urn:b> <urn:c> .", headers=TURTLE)


@pytest.mark.server
def test_events_are_for_those_who_accept_them():
    dataset = DataSet("data", MemoryStore(), Style(), lambda: 1_000_000, 100)
    head = PLAIN.replace(b"\r\n\r\n", b"\r\nAccept: text/event-stream;q=0, text/turtle\r\n\r\n")
    with listening(application([dataset])) as port:
        assert b"text/turtle" in ask(port, head)
