"""The pages of the documentation laid out for Sphinx: those of docs/ as they are, others of the repository beside them.

A page keeps its text but for the addresses of its links, which lead to the staged pages, or to copies of other files
below ``files/``. The front page's headings become the parts of the navigation, in the order of its links. Pages of the
conformance cases are drawn from the cases by the code that draws the pictures of the semantics; the page about Python
ends with the signatures and docstrings of its names.
"""

import os
import re
import zipfile
from collections.abc import Iterator
from html import escape
from itertools import groupby
from pathlib import Path
from shutil import copytree
from typing import Final

from reference import reference
from tests.semantics.pictures import Panel, picture

from streamgauge.query import parse_sparql
from streamgauge.query.printer import sparql
from streamgauge.suites.conformance.cases import ConformanceCase, load

ROOT: Final = Path(__file__).resolve().parents[2]
OTHERS: Final = {
    "README.md": "index.md",
    "benchmarks/RESULTS.md": "benchmarks.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}
"""Pages outside of docs/ by their path in the repository, with the staged page that a link to them leads to."""

LINK: Final = re.compile(r"(?<=\]\()(?!https?:|mailto:|#)([^()\s#]+)(?=[#)])")
NAMED: Final = re.compile(r"\[([\w-]+\.md)\]\(\1\b")
"""A link that is called by its address."""

CASES: Final = "cases"
ALL: Final = sparql(parse_sparql("SELECT ?s { ?s <urn:p> ?o }"))
"""The query of the cases that do not show another."""


def stage(folder: Path) -> None:
    """Lay out the sources of the site in an empty folder; a link that leads nowhere is a ValueError that names it."""
    folder.mkdir(parents=True, exist_ok=True)
    homes = {f"docs/{page.name}": page.name for page in sorted((ROOT / "docs").glob("*.md"))} | OTHERS
    for path, place in homes.items():
        if path != "README.md":
            text = (ROOT / path).read_text(encoding="utf-8")
            (folder / place).write_text(_relinked(text, path, homes, folder), encoding="utf-8")
    copytree(ROOT / "docs" / "pictures", folder / "pictures")
    _examples(folder / "files" / "examples.zip")
    python = folder / "python.md"
    python.write_text(python.read_text(encoding="utf-8") + reference(), encoding="utf-8")
    themes = list(_cases(folder / CASES))
    conformance = folder / "conformance.md"
    conformance.write_text(conformance.read_text(encoding="utf-8") + _case_list(themes), encoding="utf-8")
    front = folder / "index.md"
    text = front.read_text(encoding="utf-8")
    front.write_text(text + "".join(navigation(text)), encoding="utf-8")


def _relinked(text: str, path: str, homes: dict[str, str], folder: Path) -> str:
    """The text of the page at ``path`` with its links leading to staged files, which are copied."""

    def moved(found: re.Match[str]) -> str:
        target = os.path.normpath(ROOT / path / ".." / found[1])
        inside = Path(target).relative_to(ROOT).as_posix()
        if inside in homes:
            return homes[inside]
        if inside.startswith("docs/pictures/"):
            return inside.removeprefix("docs/")
        if inside.partition("/")[0] == "examples" and Path(target).is_dir():
            return "files/examples.zip"
        if not Path(target).is_file():
            raise ValueError(f"{path}: the link {found[1]} leads to no file of the repository")
        copy = folder / "files" / inside
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(Path(target).read_bytes())
        return f"files/{inside}"

    titled = NAMED.sub(lambda found: f"[{_title(ROOT / path / '..' / found[1])}]({found[1]}", text)
    return LINK.sub(moved, titled)


def _title(page: Path) -> str:
    """The title of a page up to its colon; its name where there is no such page, which the link's check tells."""
    first = page.resolve().read_text(encoding="utf-8").partition("\n")[0] if page.resolve().is_file() else page.name
    return first.removeprefix("# ").partition(":")[0]


def _examples(place: Path) -> None:
    """The folder of examples as one file, for readers who have the package only; times are fixed, so it is the same."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as packed:
        for file in sorted((ROOT / "examples").rglob("*")):
            inside = file.relative_to(ROOT).as_posix()
            if file.is_file() and "__pycache__" not in inside:
                packed.writestr(zipfile.ZipInfo(inside), file.read_bytes(), zipfile.ZIP_DEFLATED)


def navigation(front: str) -> Iterator[str]:
    """A hidden table of contents for each part of the front page, a page where it is linked first."""
    seen: set[str] = set()
    for part in re.split(r"^## ", front, flags=re.M)[1:]:
        title, _, text = part.partition("\n")
        pages = [page for page in dict.fromkeys(re.findall(r"\]\((\w[\w-]*)\.md\b", text)) if page not in seen]
        seen.update(pages)
        if pages:
            yield f"\n```{{toctree}}\n:hidden:\n:caption: {title}\n\n" + "\n".join(pages) + "\n```\n"


def _cases(folder: Path) -> Iterator[tuple[str, list[ConformanceCase]]]:
    """Writes a page for each theme of the conformance cases with its pictures; themes with their cases."""
    folder.mkdir()
    for theme, found in groupby(load(), key=lambda case: case.theme):
        cases = list(found)
        text = "".join(_case(folder, f"{theme}-{number}", case) for number, case in enumerate(cases, 1))
        title = f"# Conformance cases: {theme}\n\n"
        (folder / f"{theme}.md").write_text(f"{title}{_READING}{text}", encoding="utf-8")
        yield theme, cases


PLAYGROUND: Final = "http://127.0.0.1:8700/playground/"
"""Where the workbench of the reader's own machine is."""

_READING: Final = (
    "The stream is on top, a line for each report below: the bar is the scope, a dot an element that it holds, the\n"
    "triangle the instant of the report ([semantics](../semantics.md)). The answers are those of the definition; a\n"
    "test compares them with answers that were written by hand. Where no query is shown, it is\n"
    "`SELECT ?s { ?s <urn:p> ?o }`. A case opens in the playground while `streamgauge ui` runs\n"
    "([the workbench](../workbench.md)).\n"
)


def _case(folder: Path, name: str, case: ConformanceCase) -> str:
    (folder / f"{name}.svg").write_text(picture([case.name]), encoding="utf-8")
    title = case.name[0].upper() + case.name[1:]
    parts = [f"\n## {escape(title, quote=False)}\n", f"{_sentence(case.why)} Source: {_sentence(case.source)}\n"]
    parts.append(f"![{escape(_in_words(case))}]({name}.svg)\n")
    parts.append(f"[Open in the playground]({PLAYGROUND}?case={case.slug})\n")
    if (asked := sparql(case.query.form)) != ALL:
        parts.append(f"```sparql\n{asked}\n```\n")
    if case.query.static:
        facts = " .\n".join(" ".join(triple) for triple in case.query.static)
        parts.append(f"Static data:\n\n```turtle\n{facts} .\n```\n")
    return "\n".join(parts)


def _sentence(text: str) -> str:
    """A text as a sentence whose letters mean nothing to Markdown."""
    plain = re.sub(r"([\\`*_\[\]<>|#{}$])", r"\\\1", text)
    return plain[0].upper() + plain[1:] + ("" if plain.endswith((".", ")")) else ".")


def _in_words(case: ConformanceCase) -> str:
    """The picture for those who do not see it: the instants of the reports."""
    instants = ", ".join(str(due.instant) for due in Panel(case, 0).due)
    return f"Reports are due at {instants}." if instants else "No report is due."


def _case_list(themes: list[tuple[str, list[ConformanceCase]]]) -> str:
    names = {theme: "; ".join(_sentence(case.name).rstrip(".") for case in cases) for theme, cases in themes}
    rows = "\n".join(f"| [{theme}]({CASES}/{theme}.md) | {len(cases)} | {names[theme]} |" for theme, cases in themes)
    pages = "\n".join(f"{theme} <{CASES}/{theme}>" for theme, _ in themes)
    return (
        f"\n## All cases as pictures\n\n| theme | cases | |\n|---|---|---|\n{rows}\n\n"
        f"```{{toctree}}\n:hidden:\n\n{pages}\n```\n"
    )
