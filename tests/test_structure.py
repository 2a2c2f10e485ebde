"""The structure of the code: what the figures count, and what may not get worse."""

import ast
import gc
import tomllib
from pathlib import Path

import pytest

from tests.structure import ROOT, Structure, load, modules, report, without_subject
from tests.wording import Page, bindings, pages, readability, report_pages


@pytest.fixture
def small(tmp_path: Path) -> Structure:
    """Three modules and a package, one of which everyone imports."""
    home = tmp_path / "src" / "streamgauge"
    (home / "model").mkdir(parents=True)
    (home / "__init__.py").write_text('"""Package."""\n')
    (home / "model" / "__init__.py").write_text('"""Nouns."""\n\nfrom .facts import Fact\n')
    (home / "model" / "facts.py").write_text(
        '"""Facts."""\n\nimport math\n\n\nclass Fact:\n    """A fact."""\n\n    def age(self) -> int:\n        # days\n'
        "        return math.floor(3.2)\n"
    )
    (home / "model" / "closing.py").write_text('"""Ends."""\n\nclass Fact:\n    pass\n')
    (home / "cli.py").write_text(
        "def main() -> None:\n    from streamgauge.model import closing\n\n    closing.Fact()\n"
    )
    (tmp_path / "benchmarks").mkdir()
    return Structure(modules(tmp_path), {"nouns": {"spelling": "a noun"}})


def test_lines_of_code_leave_out_docstrings_and_comments(small: Structure):
    facts = small.modules["streamgauge.model.facts"]
    assert (facts.lines, facts.code) == (11, 4)


def test_an_import_in_a_function_and_a_relative_one_count(small: Structure):
    assert small.importers["streamgauge.model.closing"] == {"streamgauge.cli"}
    assert small.importers["streamgauge.model.facts"] == {"streamgauge.model"}


def test_a_module_with_one_importer_needs_a_reason_within_its_layer(small: Structure):
    assert small.one_importer() == {
        "streamgauge.model.closing": ("streamgauge.cli", "border of layers: streamgauge imports model"),
        "streamgauge.model.facts": ("streamgauge.model", ""),
    }


def test_names_that_occur_twice_and_names_in_ing(small: Structure):
    assert small.twice() == {"Fact": (["streamgauge.model.closing", "streamgauge.model.facts"], "")}
    assert small.verbs() == {"streamgauge.model.closing": ""}
    assert small.unexplained == {"one_importer": 1, "class_names": 1, "verbs": 1}


def test_modules_that_load_each_other_are_a_cycle(small: Structure, tmp_path: Path):
    assert small.cycle() == []
    home = tmp_path / "src" / "streamgauge" / "model"
    (home / "facts.py").write_text("from streamgauge.model.closing import Fact\n")
    (home / "closing.py").write_text("from .facts import Fact\n")
    result = Structure(modules(tmp_path), {}).cycle()
    assert set(result) == {"streamgauge.model.facts", "streamgauge.model.closing"}


def test_functions_and_docstrings(small: Structure):
    assert small.lengths() == [3, 4]
    assert small.long(3) == {"streamgauge.cli.main": 4}
    assert small.docstrings() == (5, 9)  # five of the modules and Fact, not cli, main, age and the other Fact


def test_the_report_names_what_has_no_reason(small: Structure):
    text = "\n".join(report(small))
    assert "class names that occur twice: 1, explained 0" in text
    assert "    Fact: streamgauge.model.closing, streamgauge.model.facts" in text


@pytest.fixture(scope="module")
def own() -> Structure:
    """This repository's; while its trees grow, which is all that happens, no garbage is looked for among them."""
    gc.disable()
    try:
        return load()
    finally:
        gc.enable()


@pytest.mark.slow
def test_the_repository_keeps_what_it_has(own: Structure):
    """Sizes and docstrings hold; figures that do not hold yet may not get worse (``at_most`` of structure.toml)."""
    limits = tomllib.loads((ROOT / "tests" / "structure.toml").read_text(encoding="utf-8"))
    assert own.large() == {}
    assert own.cycle() == []
    assert own.long() == {}
    told, of = own.docstrings()
    assert told / of >= limits["at_least"]["docstrings"]
    for what, result in own.unexplained.items():
        assert result <= limits["at_most"][what], f"{what}: see python -m tests.structure"


@pytest.mark.slow
def test_reasons_are_of_what_is_there(own: Structure):
    limits = tomllib.loads((ROOT / "tests" / "structure.toml").read_text(encoding="utf-8"))
    assert set(limits["one_importer"]) <= set(own.one_importer())
    assert set(limits["class_names"]) <= set(own.twice())
    assert set(limits["extension_points"]) <= set(own.modules)
    assert set(limits["nouns"]) <= {word for name in own.verbs() for word in (name, name.rpartition(".")[2])}


def test_a_sentence_without_a_subject_is_found_a_question_and_a_title_are_not():
    text = "A stream. What enters the window waits.\n\n- Who asks it is told.\n\n## What it costs\n\nWhat is one?"
    assert list(without_subject(text)) == ["What enters the window waits.", "Who asks it is told."]


@pytest.mark.slow
def test_docstrings_name_their_subjects(own: Structure):
    texts = ((name, text) for name, module in own.modules.items() for text in module.strings())
    assert [f"{name}: {item}" for name, text in texts for item in without_subject(text)] == []


def test_documentation_names_its_subjects():
    files = [*sorted((ROOT / "docs").glob("*.md")), *(ROOT / name for name in ("README.md", "CONTRIBUTING.md"))]
    texts = ((path.name, path.read_text(encoding="utf-8")) for path in files)
    assert [f"{name}: {item}" for name, text in texts for item in without_subject(text)] == []


PAGE = """# A page of three words

The broker notifies two subscribers. Each receives
one row; none is lost.

| a table | is words, not prose |

- An item ([its page](its-page.md)).

```sh
streamgauge engines   # code is words too
```
"""


def test_a_page_has_words_and_sentences():
    page = Page("page.md", PAGE)
    assert page.sentences == [
        ["The", "broker", "notifies", "two", "subscribers."],
        ["Each", "receives", "one", "row;"],
        ["none", "is", "lost."],
        ["An", "item", "(its", "page)."],
    ]
    assert page.words == 5 + 12 + 7 + 3 + 7
    assert next(iter(report_pages([page]))) == "pages of docs/: 1, words 34"


def test_long_words_and_long_sentences_are_harder_to_read():
    short, long = [["a", "cat", "sat"]], [["a", "cat", "sat"] * 4]
    assert readability(short) == pytest.approx(4.71 * 7 / 3 + 0.5 * 3 - 21.43)
    assert readability(short) < readability(long) < readability([["incomprehensible", "documentation", "words"] * 4])
    assert readability([]) == 0


def test_bindings_are_counted_wherever_a_name_is_bound():
    source = """
def told(each, *said):
    for each in said:
        made = [each for each in each if (held := each)]
    try:
        pass
    except ValueError as found:
        each.told = found
"""
    names = bindings(ast.parse(source))
    assert names == {"each": 3, "said": 1, "made": 1, "held": 1, "found": 1}


def test_the_documentation_stays_short():
    limits = tomllib.loads((ROOT / "tests" / "structure.toml").read_text(encoding="utf-8"))
    assert sum(page.words for page in pages(ROOT)) <= limits["at_most"]["words"]


@pytest.mark.slow
def test_names_of_the_code_are_of_the_field(own: Structure):
    limits = tomllib.loads((ROOT / "tests" / "structure.toml").read_text(encoding="utf-8"))
    assert own.private_names().total() <= limits["at_most"]["private_names"]
