"""The documentation as a site: `python docs/site [OUT]` builds it; a warning of Sphinx is an error.

Needs the extra `docs` (Sphinx, MyST, Furo). OUT is `dist/site` below the repository unless it is given. A site that was
built from the same files by the same libraries is left as it is.
"""

import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
MADE_FROM = "made-from.txt"
"""The file of a site that says from what it was built."""

sys.path[:0] = [str(HERE), str(ROOT / "src"), str(ROOT)]

from reference import files  # noqa: E402  beside this file


def inputs() -> Iterator[Path]:
    """The files of which the site is made: pages, pictures, examples, cases, and the code that draws these."""
    yield from (ROOT / name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "benchmarks/RESULTS.md"))
    drawing = ("report/colours.py", "report/timeline.py")
    yield from (ROOT / "src" / "streamgauge" / name for name in ("__init__.py", *drawing))
    yield ROOT / "tests" / "semantics" / "pictures.py"
    yield from files()
    for folder in ("docs", "examples", "src/streamgauge/suites/conformance", "src/streamgauge/semantics"):
        found = (file for file in (ROOT / folder).rglob("*") if file.is_file() and file.suffix != ".pyc")
        yield from sorted(found)


def digest() -> str:
    """The digest of all inputs of a site, 64 hexadecimal letters."""
    found = sha256(" ".join(version(name) for name in ("sphinx", "myst-parser", "furo", "pygments")).encode())
    for file in inputs():
        found.update(f"{file.relative_to(ROOT)}\0".encode() + sha256(file.read_bytes()).digest())
    return found.hexdigest()


def build(out: Path) -> int:
    """Build the site into a folder, in the place of what is there; the exit code of Sphinx, 0 without a warning."""
    try:
        from sphinx.cmd.build import main
        from staging import stage

        made = digest()
    except ImportError as error:
        print(f"the site is built by Sphinx, and {error.name} is not here: pip install '.[docs]'", file=sys.stderr)
        return 2
    out.parent.mkdir(parents=True, exist_ok=True)
    with _alone(out):
        return 0 if _made_from(out) == made else _build(out, made, main, stage)


@contextmanager
def _alone(out: Path) -> Iterator[None]:
    """One build of a folder at a time; the next finds what the one before has made."""
    with Path(tempfile.gettempdir(), f"streamgauge-site-{sha256(bytes(out)).hexdigest()[:16]}").open("w") as lock:
        try:
            from fcntl import LOCK_EX, flock
        except ImportError:  # Windows: builds at once do the work twice
            yield
            return
        flock(lock, LOCK_EX)
        yield


def _build(out: Path, made: str, main: Callable[[list[str]], int], stage: Callable[[Path], None]) -> int:
    if out.exists() and not _made_from(out) and any(out.iterdir()):
        print(f"{out} has other things than a site: name a new or empty folder", file=sys.stderr)
        return 2
    with TemporaryDirectory(prefix=".site-", dir=out.parent) as work:
        sources, site = Path(work, "sources"), Path(work, "site")
        try:
            stage(sources)
        except ValueError as error:  # a link that leads nowhere
            print(error, file=sys.stderr)
            return 2
        strict = ("--fail-on-warning", "--keep-going", "--quiet", "--fresh-env")
        code = main([*strict, "--conf-dir", str(HERE), "--doctree-dir", f"{work}/doctrees", str(sources), str(site)])
        if code:
            return code
        for own in (".buildinfo", "objects.inv"):
            (site / own).unlink(missing_ok=True)
        (site / MADE_FROM).write_text(made, encoding="utf-8")
        if out.exists():
            out.rename(Path(work, "older"))
        site.rename(out)
    return 0


def _made_from(site: Path) -> str:
    mark = site / MADE_FROM
    return mark.read_text(encoding="utf-8") if mark.is_file() else ""


if __name__ == "__main__":
    where = Path(sys.argv[1]).absolute() if len(sys.argv) > 1 else ROOT / "dist" / "site"
    failed = build(where)
    print(f"the site is in {where}" if not failed else "the site is not built", file=sys.stderr)
    sys.exit(failed)
