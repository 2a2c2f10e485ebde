"""The documentation as a site: `python docs/site [OUT]` builds it; a warning of Sphinx is an error.

Needs the extra `docs` (Sphinx, MyST, Furo). OUT is `dist/site` below the repository unless it is given.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT / "src"), str(ROOT)]


def build(out: Path) -> int:
    """Build the site into a folder; the exit code of Sphinx, 0 where there is no warning."""
    try:
        from sphinx.cmd.build import main
    except ImportError:
        print("the site is built by Sphinx: pip install -e '.[docs]'", file=sys.stderr)
        return 2
    from staging import stage

    with TemporaryDirectory(prefix="streamgauge-site-") as work:
        sources = Path(work, "sources")
        stage(sources)
        strict = ("--fail-on-warning", "--keep-going", "--quiet", "--fresh-env")
        code = main([*strict, "--conf-dir", str(HERE), "--doctree-dir", f"{work}/doctrees", str(sources), str(out)])
    for own in (".buildinfo", "objects.inv"):
        (out / own).unlink(missing_ok=True)
    return code


if __name__ == "__main__":
    where = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "dist" / "site"
    failed = build(where)
    print(f"the site is in {where}" if not failed else "the site has mistakes", file=sys.stderr)
    sys.exit(failed)
