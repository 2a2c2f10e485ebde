"""Peers in Rust, behind the pipe like every other engine: the project ``peers/``, built by cargo outside of this tree.

`rsp-rs` is the engine of that crate. `star` is not an engine but two joins over ids, hand-written for
differential-dataflow, for the queries select and variation: an upper bound to compare with. Each is built once, into a
folder of the user's cache that is named by a digest of the project.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Iterable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final

from benchmarks.results import HOME
from streamgauge.engines import EngineUnavailableError

PROJECT: Final = HOME / "peers"

SEMANTICS: Final = {"rsp-rs": "rsp-js", "star": "rspql"}
"""The semantics of each peer: rsp-rs is a port of rsp-js."""

QUERIES: Final = {"rsp-rs": ("select", "variation"), "star": ("select", "variation")}
"""The queries that are asked: rsp-rs reports an average of nothing too, and the joins are two."""

LIMIT_S: Final = 3600.0

_LEAN: Final = "[dependencies.oxigraph]\n"


def command(name: str) -> list[str]:
    """The program of a peer; EngineUnavailableError says what is absent or does not build."""
    return [str(program()), name]


@cache
def program() -> Path:
    """The built program; EngineUnavailableError."""
    cargo = shutil.which("cargo")
    if cargo is None:
        raise EngineUnavailableError(f"peers in Rust need cargo, the builder of {PROJECT.name}/: install Rust (rustup)")
    built = place(os.environ.get("XDG_CACHE_HOME"))
    path = built / "target" / "release" / "peers"
    if not path.exists():
        _build(cargo, built)
    return path


def place(cache_home: str | None) -> Path:
    """The folder of the build of these sources, in the cache of the user."""
    return Path(cache_home or Path.home() / ".cache") / "streamgauge" / "peers" / digest(sources())


def sources() -> list[Path]:
    """The files of the project that make the program."""
    return [PROJECT / "Cargo.toml", PROJECT / "Cargo.lock", *sorted((PROJECT / "src").glob("*.rs"))]


def digest(files: Iterable[Path]) -> str:
    """A name that changes with the files."""
    key = sha256()
    for file in files:
        key.update(file.name.encode() + b"\0" + file.read_bytes())
    return key.hexdigest()[:16]


def _build(cargo: str, built: Path) -> None:
    """Build a copy of the project, rsp-rs with Oxigraph's store in memory only: RocksDB is never opened."""
    project, lean = built / "project", built / "rsp-rs"
    shutil.copytree(PROJECT, project, dirs_exist_ok=True, ignore=shutil.ignore_patterns("target"))
    described = json.loads(_run([cargo, "metadata", "--format-version", "1", "--locked"], project))
    manifest = next(package["manifest_path"] for package in described["packages"] if package["name"] == "rsp-rs")
    shutil.copytree(Path(manifest).parent, lean, dirs_exist_ok=True)
    (lean / "Cargo.toml").write_text(without_defaults(Path(manifest).read_text(encoding="utf-8")), encoding="utf-8")
    patch = f"patch.crates-io.rsp-rs.path={json.dumps(str(lean))}"
    print(f"building {PROJECT.name}/ in {built}, which takes minutes once", flush=True)
    _run([cargo, "build", "--release", "--config", patch, "--target-dir", str(built / "target")], project)


def without_defaults(manifest: str) -> str:
    """The manifest of rsp-rs with Oxigraph's default features off; EngineUnavailableError where that is not there."""
    if manifest.count(_LEAN) != 1:
        raise EngineUnavailableError("the manifest of rsp-rs does not have the dependency oxigraph where it had")
    return manifest.replace(_LEAN, f"{_LEAN}default-features = false\n")


def _run(words: list[str], folder: Path) -> str:
    """The output of a program of cargo; EngineUnavailableError with its last words."""
    try:
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=LIMIT_S)
    except subprocess.TimeoutExpired as error:
        raise EngineUnavailableError(f"cargo {words[1]} took longer than {LIMIT_S:g} s") from error
    if done.returncode:
        raise EngineUnavailableError(f"cargo {words[1]} failed: {done.stderr.strip()[-500:]}")
    return done.stdout
