"""Places: which texts name a local path, which another file system, and that no command takes one for the other."""

from pathlib import Path

import pytest

from streamgauge.cli.catalogue import COMMANDS
from streamgauge.cli.main import load
from streamgauge.formats.places import RemotePlace, RemotePlaceError, local, place


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("a/b", "a/b"),
        ("/a b", "/a b"),
        ("file:/a/b", "/a/b"),
        ("file:///a%20b", "/a b"),
        ("file://localhost/a", "/a"),
        ("12:30.nq", "12:30.nq"),
        ("C:/x", "C:/x"),
        ("./hdfs:/x", "hdfs:/x"),
        ("urn:x", "urn:x"),
    ],
)
def test_local_places(text: str, path: str) -> None:
    assert place(text) == Path(path)
    assert local(text) == Path(path)


@pytest.mark.parametrize("text", ["hdfs://host:9000/a", "hdfs:/a", "hdfs:///a", "s3a://bucket/a b", "abfss://c@a/x"])
def test_remote_places(text: str) -> None:
    assert place(text) == RemotePlace(text)
    with pytest.raises(RemotePlaceError, match="local"):
        local(text)


def test_a_typed_path_is_not_taken_for_a_local_one() -> None:
    assert place(Path("hdfs://host/a")) == RemotePlace("hdfs://host/a")


def test_parts_of_a_remote_place() -> None:
    folder = RemotePlace("s3a://bucket/a/")
    assert (str(folder / "b"), folder.name, (folder / "b").parent) == (
        "s3a://bucket/a/b",
        "a",
        RemotePlace("s3a://bucket/a"),
    )


def test_a_file_of_another_host_is_refused() -> None:
    with pytest.raises(RemotePlaceError, match="host other"):
        place("file://other/a")


def test_a_folder_that_has_such_a_name_is_local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hdfs:" / "x").mkdir(parents=True)
    assert place("hdfs:/x") == Path("hdfs:/x")


def _commands(name: str, command: object) -> list[tuple[str, object]]:
    inner = getattr(command, "commands", None)
    own = [] if inner else [(name, command)]
    return own + [pair for word, one in (inner or {}).items() for pair in _commands(f"{name} {word}", one)]


PATHS = sorted(
    (words, parameter.opts[0])
    for name in COMMANDS
    for words, command in _commands(name, load(name))
    for parameter in command.params  # type: ignore[attr-defined]
    if "Path" in str(getattr(getattr(parameter, "type_descriptor", None), "annotation", ""))
)
"""Every parameter of every command that is a path."""


def test_there_are_paths() -> None:
    assert len(PATHS) > 50


@pytest.mark.parametrize(("words", "option"), PATHS)
def test_no_command_takes_a_url_for_a_path(
    words: str, option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    top, *inner = words.split()
    command = load(top)
    for word in inner:
        command = command.commands[word]
    url = "hdfs://127.0.0.1:1/x"
    given = [option, url] if option.startswith("-") else []
    for parameter in command.params:
        name = parameter.opts[0]
        if parameter.required and name != option:
            given += [name, "1"] if name.startswith("-") else ["1"]
        elif not option.startswith("-") and name == option:
            given.append(url)
    with pytest.raises(RemotePlaceError, match=url):
        command.make_context(words, given)
    assert not list(tmp_path.iterdir())
