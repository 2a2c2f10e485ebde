"""Drawn damages of a store: each is refused with one sentence and found by ``verify``, or does no harm; no signal."""

import json
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lmdb
import pytest
from typer.testing import CliRunner

from streamgauge.cli.main import app, main
from streamgauge.servers.durability import pack, unpack
from streamgauge.servers.fragments.store import DamagedStoreError, FullError, Keep, recovery
from streamgauge.servers.fragments.store.disk import DiskStore, FolderError
from streamgauge.servers.fragments.store.lmdb_file import LmdbFile
from tests.servers.damages import KINDS, damage
from tests.servers.fragments.store.changing import step
from tests.servers.fragments.store.opened import ALL, answers, opened

ROOT = Path(__file__).parents[4]
FILES = ["data.mdb", "held", "lock.mdb"]
KEEP = Keep(runs=1000)


def changed(folder: Path, first: int, last: int) -> None:
    store = DiskStore(folder, KEEP)
    for number in range(first, last):
        store.change(*step(number), at=number)
    store.close()


def copied(folder: Path, to: Path) -> Path:
    shutil.copytree(folder, to)
    return to


def loaded(folder: Path, first: int) -> None:
    store = DiskStore(folder, KEEP)
    store.load((item for number in range(first, first + 40) for item in step(number)[1]), at=0)
    store.close()


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, dict[str, Path]]]:
    """Stores by how they were filled, each with another and an older one."""
    root = tmp_path_factory.mktemp("stores")
    changed(root / "one", 1, 30)
    older = copied(root / "one", root / "older")
    changed(root / "one", 30, 45)
    changed(root / "other", 1, 46)
    loaded(root / "loaded", 1)
    loaded(root / "reloaded", 100)
    early = copied(root / "loaded", root / "early")
    changed(root / "loaded", 2, 4)
    return {
        "changed": (root / "one", {"another's": root / "other", "older": older}),
        "loaded": (root / "loaded", {"another's": root / "reloaded", "older": early}),
    }


@pytest.fixture(scope="module")
def asked() -> Iterator[Callable[[Path], dict[str, Any]]]:
    """What became of a damaged folder, opened by another program."""
    words = [sys.executable, "-m", "tests.servers.fragments.store.opened"]
    with subprocess.Popen(words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:

        def ask(folder: Path) -> dict[str, Any]:
            assert program.stdin is not None
            assert program.stdout is not None
            program.stdin.write(f"{folder}\n")
            program.stdin.flush()
            line = program.stdout.readline()
            assert line, f"it ended with {program.wait()}"
            result: dict[str, Any] = json.loads(line)
            return result

        yield ask


@pytest.mark.server
@pytest.mark.parametrize("kind", ["changed", "loaded"])
@pytest.mark.parametrize("many", [48, pytest.param(1000, marks=pytest.mark.prove)])
def test_a_damaged_store_is_refused_or_answers_as_before(
    stores: dict[str, tuple[Path, dict[str, Path]]],
    asked: Callable[[Path], dict[str, Any]],
    tmp_path: Path,
    kind: str,
    many: int,
) -> None:
    whole, others = stores[kind]
    expected = asked(copied(whole, tmp_path / "whole"))
    refused = 0
    for number in range(many):
        draw, folder = random.Random(number), copied(whole, tmp_path / str(number))
        files = FILES if number % 4 == 0 else FILES[:1]
        what = f"damage {number}: {damage(folder, files, others, draw, KINDS[number % len(KINDS)])}"
        verified = sound(folder)
        result = asked(folder)
        if "refused" in result:
            assert result["refused"].startswith(str(folder)), what
            assert "\n" not in result["refused"], what
            assert "damaged" in result["refused"], what
            assert not verified, what
            refused += 1
        else:
            assert result == expected, what
        shutil.rmtree(folder)
    assert refused > many // 3


def sound(folder: Path) -> bool:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    result = recovery.verify(folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before, "verify changed the files"
    return result.whole


def test_whole_stores_are_sound(stores: dict[str, tuple[Path, dict[str, Path]]]) -> None:
    for folder, _ in stores.values():
        result = recovery.verify(folder)
        assert result.whole, result.damages
        assert result.sound["blocks of orders"] >= 6


def test_a_store_that_a_server_has_open_is_not_looked_at(
    stores: dict[str, tuple[Path, dict[str, Path]]], tmp_path: Path
) -> None:
    folder = copied(stores["changed"][0], tmp_path / "one")
    store = DiskStore(folder, KEEP)
    with pytest.raises(FolderError, match="a server has it open: stop the server first"):
        recovery.verify(folder)
    store.close()
    assert recovery.verify(folder).whole


def test_the_command_line_says_one_sentence(
    stores: dict[str, tuple[Path, dict[str, Path]]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    copied(stores["changed"][0], tmp_path / "store" / "data")
    (tmp_path / "store" / "data" / "data.mdb").write_bytes(b"")
    (tmp_path / "data.nt").write_text("<urn:s> <urn:p> <urn:o> .\n")
    words = ["streamgauge", "fragments", "serve", str(tmp_path / "data.nt"), "--store", str(tmp_path / "store")]
    monkeypatch.setattr(sys, "argv", [*words, "--keep", "24h"])
    with pytest.raises(SystemExit) as ended:
        main()
    output = capsys.readouterr().err
    assert (ended.value.code, output.count("\n")) == (2, 1), output
    assert "it is empty though held and lock.mdb beside it was kept for it" in output


def test_a_store_cut_short_is_no_bus_error(stores: dict[str, tuple[Path, dict[str, Path]]], tmp_path: Path) -> None:
    folder = copied(stores["changed"][0], tmp_path / "one")
    with (folder / "data.mdb").open("r+b") as file:
        file.truncate(3 * 4096)
    with pytest.raises(FolderError, match=r"data\.mdb: damaged: page \d+ .*the file ends before it.*--save-to NEW"):
        DiskStore(folder, KEEP)


@pytest.mark.parametrize("state", ["empty", "missing"])
@pytest.mark.parametrize("evidence", [("held", "lock.mdb"), ("held",), ("lock.mdb",)])
def test_an_emptied_store_is_not_made_anew(
    stores: dict[str, tuple[Path, dict[str, Path]]], tmp_path: Path, state: str, evidence: tuple[str, ...]
) -> None:
    folder = copied(stores["changed"][0], tmp_path / "one")
    for path in folder.iterdir():
        if path.name not in evidence:
            path.unlink()
    if state == "empty":
        (folder / "data.mdb").touch()
    for _ in range(2):
        assert not recovery.verify(folder).whole
        with pytest.raises(FolderError, match=f"{state} though .* was kept for it, and nothing of it can be saved"):
            DiskStore(folder, KEEP)


def test_a_store_that_was_never_finished_is_begun_again(tmp_path: Path) -> None:
    """A kill after the witness was begun, before LMDB wrote anything."""
    DiskStore(tmp_path / "one").close()
    held = (tmp_path / "one" / "held").read_bytes()
    folder = tmp_path / "two"
    folder.mkdir()
    witness = unpack(held)
    assert witness is not None
    (folder / "held").write_bytes(pack(witness._replace(number=0)))
    (folder / "data.mdb").touch()
    store = DiskStore(folder)
    assert (store.version, store.count(ALL)) == (0, 0)
    store.close()


@pytest.mark.parametrize("page", [0, 1, "root", "leaf", "block"])
def test_sound_quads_are_saved(
    stores: dict[str, tuple[Path, dict[str, Path]]], tmp_path: Path, page: int | str
) -> None:
    folder = copied(stores["loaded" if page == "block" else "changed"][0], tmp_path / "one")
    whole = opened(copied(folder, tmp_path / "whole"))["answers"][0]  # type: ignore[index]
    number = place(folder, page)
    with (folder / "data.mdb").open("r+b") as file:
        file.seek(number * 4096 + 200)
        file.write(b"\xa5" * 3000)
        if isinstance(page, int):
            file.seek(number * 4096)
            file.write(bytes(64))
    with pytest.raises((FolderError, DamagedStoreError), match="damaged"):
        answers(DiskStore(folder, KEEP))
    run = CliRunner().invoke(app, ["fragments", "verify", str(folder), "--save-to", str(tmp_path / "new")])
    assert run.exit_code == 1, run.output
    store = DiskStore(tmp_path / "new", KEEP)
    results = sorted(map(list, store.page(ALL, 0, 10**6)))
    expected = [list(item) for item in whole[1]]
    store.close()
    if page in ("root", "block", 0, 1):
        newest = page not in (0, 1)
        assert not newest or results == expected
        assert len([item for item in expected if item in results]) > len(expected) * 0.9
    assert all(item in expected for item in results) or page in (0, 1)
    assert "lost:" in run.output
    assert CliRunner().invoke(app, ["fragments", "verify", str(tmp_path / "new")]).exit_code == 0


def place(folder: Path, page: int | str) -> int:
    """The number of the main tree's root, of a leaf with terms, of a block's own page."""
    if isinstance(page, int):
        return page
    file = LmdbFile(folder / "data.mdb")
    try:
        meta = file.meta()
        if page == "root":
            return meta.main.root
        for number, records in file.live_leaves(meta):
            assert not isinstance(records, Exception)
            for key, value in records:
                if page == "leaf" and key[:1] == b"t" and number != meta.main.root:
                    return number
                if page == "block" and key[:1] == b"0" and not isinstance(value, bytes):
                    return value.page
    finally:
        file.close()
    raise AssertionError(page)


def test_a_store_of_another_format_is_refused(stores: dict[str, tuple[Path, dict[str, Path]]], tmp_path: Path) -> None:
    folder = copied(stores["changed"][0], tmp_path / "one")
    with lmdb.open(str(folder)) as environment, environment.begin(write=True) as writing:
        writing.put(b"m:format", b"1")
    with pytest.raises(FolderError, match=r"damaged: .*--save-to NEW"):
        DiskStore(folder, KEEP)


def test_a_load_that_found_no_room_leaves_nothing(tmp_path: Path) -> None:
    """Half of its blocks are on the disk: none of them is read, counted, or taken for a later change's."""
    store = DiskStore(tmp_path, limit=2**20)
    quads = [((f"<urn:s{n:05}>", "<urn:p>", f'"{n % 7}"', ""), None) for n in range(5000)]
    with pytest.raises(FullError, match="limit"):
        store.load(quads)
    assert (store.version, store.count(ALL), store.page(ALL, 0, 10)) == (0, 0, [])
    assert store.change((), quads[-3:]).version == 1
    expected = sorted(quad for quad, _ in quads[-3:])
    assert (store.count(ALL), sorted(store.page(ALL, 0, 10))) == (3, expected)
    store.close()
    again = DiskStore(tmp_path)
    assert (again.count(ALL), sorted(again.page(ALL, 0, 10))) == (3, expected)
    assert [again.count((quad[0], None, None, None)) for quad, _ in quads[:5]] == [0] * 5
    again.close()


@pytest.mark.server
def test_a_file_that_is_cut_short_while_it_is_mapped_ends_the_process_with_a_sentence(tmp_path):
    """The kernel tells a read of a page that is there no more by SIGBUS, which ended the server without a word."""
    ended = subprocess.run(
        [sys.executable, "-m", "tests.servers.fragments.store.cut", tmp_path / "a"], capture_output=True, text=True
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == (
        f"{tmp_path / 'a'}: a part of what is kept there cannot be read any more (a file was cut short, or the disk"
        " fails): the server ends; look at it by `streamgauge fragments verify`\n"
    )
