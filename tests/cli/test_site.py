"""The documentation as a site: it is whole, asks no other machine, and its builder refuses what leads nowhere."""

import asyncio
import json
import re
import runpy
import subprocess
import sys
import tomllib
import zipfile
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import httpx
import pytest
from hatchling.bridge.app import Application

import streamgauge
from streamgauge.cli import docs
from streamgauge.model.mistake import MistakeError
from streamgauge.suites.conformance.cases import load

pytestmark = pytest.mark.server  # Sphinx runs as a program

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LOADING = {"link": "href", "script": "src", "img": "src", "iframe": "src", "source": "src", "use": "href"}
"""Elements that make a browser fetch something, by the attribute with its address."""


class SitePage(HTMLParser):
    """The addresses of a page: those that it loads, and those that its links lead to; and its anchors and texts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.pictures: dict[str, str] = {}
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = {name: value or "" for name, value in attrs}
        if (address := given.get(LOADING.get(tag, ""), "")) and given.get("rel") not in ("next", "prev", "search"):
            self.loads.append(address)
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag == "img":
            self.pictures[given["src"]] = given.get("alt", "")
        self.anchors |= {given[name] for name in ("id", "name") if name in given}

    def handle_data(self, data):
        self.words += data


@pytest.fixture(scope="module")
def site():
    return docs.built_site()


@pytest.fixture(scope="module")
def pages(site):
    files = [*site.glob("*.html"), *site.glob("cases/*.html")]
    return {file.relative_to(site).as_posix(): SitePage(file.read_text("utf-8")) for file in files}


def test_every_page_is_there_with_its_pictures(site, pages):
    written = {page.name for page in (ROOT / "docs").glob("*.md")}
    more = {"benchmarks.md", "changelog.md", "contributing.md", "security.md"}
    themes = {f"cases/{case.theme}.md" for case in load()}
    there = {f"{name.removesuffix('.html')}.md" for name in pages if name != "search.html"}
    assert there == written | more | themes
    for theme in themes:
        cases = [case for case in load() if f"cases/{case.theme}.md" == theme]
        page = pages[theme.replace(".md", ".html")]
        assert len(page.pictures) == len(cases)
        assert all("due" in alt for alt in page.pictures.values())
        assert all(case.name[1:] in page.words for case in cases)
        opened = [link.partition("?case=")[2] for link in page.links if "/playground/?case=" in link]
        assert opened == [case.slug for case in cases]
    assert len(pages["semantics.html"].pictures) == 5


def test_every_name_of_the_package_has_its_signature_and_docstring(pages):
    page = pages["python.html"]
    assert [name for name in streamgauge.__all__ if name.lower().replace("_", "-") not in page.anchors] == []
    assert "def expect(query: " in page.words
    assert " ".join((streamgauge.expect.__doc__ or "").split()[:8]) in " ".join(page.words.split())


def test_every_link_leads_somewhere(site, pages):
    wrong = []
    for name, page in pages.items():
        for address in (*page.links, *page.loads):
            path, _, anchor = unquote(address).partition("#")
            if re.match(r"https?:|mailto:|data:", path) or address == "#":
                continue
            target = (site / name).parent.joinpath(path.partition("?")[0]).resolve() if path else site / name
            there = target.is_file() and target.is_relative_to(site)
            inside = target.relative_to(site).as_posix() if there else ""
            if not there or (anchor and inside in pages and anchor not in pages[inside].anchors):
                wrong.append(f"{name}: {address}")
    assert wrong == []


def test_nothing_is_loaded_from_another_machine(site, pages):
    assert [(name, load) for name, page in pages.items() for load in page.loads if "//" in load] == []
    assert sum(len(page.loads) for page in pages.values()) > 500
    for sheet in site.rglob("*.css"):
        asked = re.findall(r"url\(\s*[\"']?([^\"')]+)|@import\s+[\"']([^\"']+)", sheet.read_text("utf-8"))
        assert [line for line in map("".join, asked) if "//" in line.removeprefix("data:")[:9]] == [], sheet.name
    for script in site.rglob("*.js"):
        assert not re.search(r"(?:fetch|importScripts|import)\(\s*[\"']https?:", script.read_text("utf-8")), script.name


def test_words_are_found_and_no_address_of_the_builder_is_kept(site):
    text = (site / "searchindex.js").read_text("utf-8")
    result = json.loads(text[text.index("{") : text.rindex("}") + 1])
    assert "semantics" in result["docnames"]
    assert result["terms"]["landmark"]
    for file in site.rglob("*"):
        if file.suffix in {".html", ".js", ".css", ".txt"}:
            assert str(ROOT) not in file.read_text("utf-8"), file.name


def test_examples_can_be_taken_along(site):
    (packed,) = site.rglob("examples.zip")
    with zipfile.ZipFile(packed) as result:
        names = set(result.namelist())
    assert {"examples/select.toml", "examples/average.rq", "examples/engines/minimal.py"} <= names


def test_pages_are_served_with_a_policy(site):
    async def answers():
        transport = httpx.ASGITransport(docs.application(site))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            asked = ("/", "/semantics.html", "/..%2fpyproject.toml", "/health")
            elsewhere = await client.get("/", headers={"Host": "elsewhere.example"})
            return [*[await client.get(path) for path in asked], elsewhere]

    front, page, outside, health, elsewhere = asyncio.run(answers())
    assert "Answer a query" in front.text
    assert "default-src 'self'" in front.headers["Content-Security-Policy"]
    assert (page.status_code, outside.status_code, health.json()) == (200, 404, {"status": "up"})
    assert elsewhere.status_code >= 400


def test_an_anchor_that_is_none_ends_the_build(tmp_path):
    (tmp_path / "index.md").write_text("# Front\n\n[there](#front) [lost](#nowhere)\n")
    command = ("-m", "sphinx", "--fail-on-warning", "--quiet", "-c", ROOT / "docs" / "site", tmp_path, tmp_path / "out")
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True)
    assert done.returncode != 0
    assert "nowhere" in done.stderr
    assert "front" not in done.stderr.replace(str(tmp_path), "").lower()


@pytest.fixture
def staging(monkeypatch):
    for folder in (ROOT, ROOT / "docs" / "site"):
        monkeypatch.syspath_prepend(str(folder))
    return runpy.run_path(str(ROOT / "docs" / "site" / "staging.py"))


MOVED = {
    "[a](judging.md#late)": "[a](judging.md#late)",
    "[judging.md](judging.md)": "[Judging](judging.md)",
    "[b](../benchmarks/RESULTS.md)": "[b](benchmarks.md)",
    "[c](../examples/average.rq)": "[c](files/examples/average.rq)",
    "[d](../examples/engines/)": "[d](files/examples.zip)",
    "[e](https://a.b/c.md)": "[e](https://a.b/c.md)",
}
"""Links of a page of docs/, and the same in the site."""


def test_links_lead_to_staged_files(staging, tmp_path):
    homes = {"docs/judging.md": "judging.md", **staging["OTHERS"]}
    moved = {text: staging["_relinked"](text, "docs/index.md", homes, tmp_path) for text in MOVED}
    assert moved == MOVED
    assert (tmp_path / "files" / "examples" / "average.rq").is_file()
    with pytest.raises(ValueError, match=r"docs/index.md: the link nothing.md leads to no file"):
        staging["_relinked"]("[a](nothing.md)", "docs/index.md", homes, tmp_path)


def test_the_front_page_is_the_navigation(staging):
    front = (
        "# F\n## Start\n[a](one.md) [b](two.md#x)\n## Use\n[b](two.md) [c](../three.md) [d](four.md)\n## None\ntext\n"
    )
    parts = list(staging["navigation"](front))
    assert [re.findall(r"^\w+$", part, re.M) for part in parts] == [["one", "two"], ["four"]]
    assert ":caption: Use" in parts[1]


def test_a_folder_of_other_things_is_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    done = subprocess.run([sys.executable, ROOT / "docs" / "site", tmp_path], capture_output=True, text=True)
    assert done.returncode == 2
    assert "name a new or empty folder" in done.stderr
    assert (tmp_path / "mine.txt").read_text() == "mine"


def test_what_is_missing_is_told(tmp_path, monkeypatch):
    package = tmp_path / "src" / "streamgauge"
    with pytest.raises(MistakeError, match="build them in a checkout by `python docs/site`"):
        docs.built_site(package)
    (tmp_path / "docs" / "site").mkdir(parents=True)
    monkeypatch.setitem(sys.modules, "furo", None)
    with pytest.raises(MistakeError, match=r"pip install 'streamgauge\[docs\]'; without it, read .*docs/index.md"):
        docs.built_site(package)
    (package / "site").mkdir(parents=True)
    (package / "site" / "index.html").write_text("<h1>Streamgauge</h1>")
    assert docs.built_site(package) == package / "site"


def test_a_site_that_cannot_be_built_does_not_stop_a_wheel(tmp_path):
    """An empty project has no pages, which ends the build of the site; nothing is written into it."""
    names = runpy.run_path(str(ROOT / "docs" / "site" / "hook.py"))
    hook = names["SiteBuildHook"](str(tmp_path), {}, None, None, str(tmp_path), "wheel", Application())
    build_data = {"force_include": {}}
    hook.initialize("standard", build_data)
    hook.finalize("standard", build_data, "")
    assert build_data == {"force_include": {}}
    assert list(tmp_path.iterdir()) == []


_DRAW = f"""
import sys
from pathlib import Path
from importlib.metadata import packages_distributions
sys.path[:0] = [{str(ROOT / "docs" / "site")!r}, {str(ROOT / "src")!r}, {str(ROOT)!r}]
from staging import stage
stage(Path(sys.argv[1]))
owners = packages_distributions()
loaded = {{name.partition(".")[0] for name, module in sys.modules.items() if module is not None}}
print(*sorted({{owner for name in loaded for owner in owners.get(name, ())}}))
"""


def test_pictures_are_drawn_with_what_the_build_declares(tmp_path):
    """Else an isolated build, which has nothing more, makes a wheel without the site."""
    declared = set(runpy.run_path(str(ROOT / "docs" / "site" / "backend.py"))["DRAWN_WITH"])
    command = [sys.executable, "-P", "-c", _DRAW, str(tmp_path / "sources")]
    used = set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())
    assert used - {"streamgauge", "setuptools", "hatchling"} <= declared
    required = {re.split("[<>=~! ]", line)[0] for line in PROJECT["dependencies"]}
    assert declared <= required
