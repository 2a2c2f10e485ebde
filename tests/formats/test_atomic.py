"""Files and folders made whole or not at all, several makers at once and killed ones among them."""

import errno
import os
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from streamgauge.formats.files import hardlink, overwrite, put_if_absent, stage

pytestmark = pytest.mark.server


def fill(place: Path, name: str) -> None:
    place.mkdir()
    for number in range(20):
        (place / str(number)).write_text(name)


def said(folder: Path) -> set[str]:
    assert len(list(folder.iterdir())) == 20
    return {file.read_text() for file in folder.iterdir()}


@pytest.mark.parametrize("end", [put_if_absent, overwrite])
def test_of_many_that_make_a_folder_at_once_it_is_one_maker_s(tmp_path, end):
    target, together = tmp_path / "runs" / "made", Barrier(4)

    def make(name: str) -> set[str]:
        with stage(target) as place:
            fill(place, name)
            together.wait()
            end(place, target)
        return {name}

    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(make, "abcd"))
    assert said(target) in made
    assert list((tmp_path / "runs").iterdir()) == [target]


def test_the_first_is_kept(tmp_path):
    target = tmp_path / "made"
    with stage(target) as mine:
        fill(mine, "late")
        with stage(target) as other:
            fill(other, "first")
            put_if_absent(other, target)
        put_if_absent(mine, target)
    assert said(target) == {"first"}
    assert list(tmp_path.iterdir()) == [target]


def test_what_is_put_replaces_files_and_folders(tmp_path):
    for name in ("old", "new"):
        with stage(tmp_path / "folder") as place:
            fill(place, name)
            overwrite(place, tmp_path / "folder")
        with stage(tmp_path / "file") as place:
            place.write_text(name)
            overwrite(place, tmp_path / "file")
    assert said(tmp_path / "folder") == {"new"}
    assert (tmp_path / "file").read_text() == "new"
    assert len(list(tmp_path.iterdir())) == 2


def test_nothing_is_left_of_what_fails(tmp_path):
    def fail(place: Path) -> None:
        fill(place, "half")
        raise OSError(errno.ENOSPC, "full")

    with pytest.raises(OSError, match="full"), stage(tmp_path / "made") as place:
        fail(place)
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_goes_and_what_a_running_one_makes_stays(tmp_path):
    code = """
    import os, sys
    from pathlib import Path
    from streamgauge.formats.files import stage
    with stage(Path(sys.argv[1])) as place:
        place.mkdir()
        os.kill(os.getpid(), 9)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code), str(tmp_path / "made")], check=False)
    left = list(tmp_path.iterdir())
    assert len(left) == 1
    with stage(tmp_path / "made") as running:
        running.mkdir()
        with stage(tmp_path / "made"):
            assert list(tmp_path.iterdir()) == [running]
    assert str(os.getpid()) in running.name


@pytest.mark.parametrize("failing", [False, True])
def test_a_file_is_shared_or_copied_where_it_cannot_be(tmp_path, monkeypatch, failing):
    def refuse(source, target):
        raise OSError(errno.EXDEV, "another file system")

    if failing:
        monkeypatch.setattr(os, "link", refuse)
    (tmp_path / "one").write_text("facts")
    hardlink(tmp_path / "one", tmp_path / "two")
    assert (tmp_path / "two").read_text() == "facts"
    assert (tmp_path / "two").samefile(tmp_path / "one") is not failing
