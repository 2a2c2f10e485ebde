"""The docs are true: every command has a heading, linked pages exist, every block is run or marked."""

import re
import shlex
from pathlib import Path

import pytest
import typer

from streamgauge.cli.main import app, load
from tests.cli.pages.markdown import Block, complaint, page_blocks, read_blocks
from tests.cli.pages.shell import Shell, lines_of, same
from tests.cli.test_help import context

ROOT = Path(__file__).resolve().parents[2]
PAGES = {
    str(page.relative_to(ROOT)): page_blocks(page)
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
}
COMMANDS = sorted(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_heading(command):
    assert f"\n## {command}\n" in (ROOT / "docs" / "commands.md").read_text()


def test_no_heading_without_a_command():
    headings = re.findall(r"^## (.+)$", (ROOT / "docs" / "commands.md").read_text(), re.M)
    assert sorted(headings) == COMMANDS


def options(command):
    """The options of a command and of its subcommands."""
    names = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    return names.union(*map(options, getattr(command, "commands", {}).values()))


@pytest.mark.parametrize("command", COMMANDS)
def test_options_of_the_reference_exist(command):
    text = (ROOT / "docs" / "commands.md").read_text()
    section = text.partition(f"\n## {command}\n")[2].partition("\n## ")[0]
    named = set(re.findall(r"(?<![\w-])(--[a-z][\w-]*\w|-[A-Za-z])(?=[\s`\]=,;.:|)'/])", section))
    parameters = {"--stations", "--interval", "--duration", "--universities", "--extended"}  # of workloads
    assert sorted(named - options(load(command)) - (parameters if command == "generate" else set())) == []


@pytest.mark.parametrize("page", [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))], ids=lambda p: p.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES)
def test_every_block_is_run_or_marked(page):
    blocks = PAGES[page]
    commands = "".join(block.text for block in blocks if block.runs)
    complaints = (complaint(block, before, commands) for before, block in zip([None, *blocks], blocks, strict=False))
    assert not list(filter(None, complaints))


@pytest.mark.parametrize("page", PAGES)
def test_no_command_hides_in_an_indented_block(page):
    for line in (ROOT / page).read_text().splitlines():
        assert not re.match(r" {4,}(\$ )?(streamgauge|npm|pip|make|curl|python|node|export) ", line), line


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_illustrations_can_be_typed(page):
    for block in PAGES[page]:
        if "illustration" in block.marks or "prove" in block.marks:
            for line in block.text.splitlines():
                command = re.match(r"(?:\$ |.*\| )?streamgauge (.*)", line)
                if command:
                    assert context(shlex.split(command[1], comments=True)).command.name


BLOCKS = {
    "```\nstreamgauge engines\n```": "page.md:1: neither runnable nor marked",
    "```yaml\na: 1\n```": "page.md:1: neither runnable nor marked",
    "```toml\n# select.toml\nname = 1\n```": "page.md:1: no command of the page names select.toml",
    "<!-- illustration -->\n```\nx\n```": "page.md:2: the mark `illustration` has no reason",
    "<!-- illustration: needs a cluster -->\n\ntext\n\n```\nx\n```": "page.md:5: neither runnable nor marked",
    "<!-- output -->\n```\nx\n```": "page.md:2: no block before it prints anything",
    "<!-- illustration: needs a cluster -->\n```\nx\n```": None,
    "```sh\nstreamgauge engines\n```": None,
    "   ```python\n   print(1)\n   ```": None,
}


@pytest.mark.parametrize("text", BLOCKS)
def test_a_block_that_is_neither_is_told(text):
    (block,) = read_blocks("page.md", text)
    said = complaint(block, None, "streamgauge engines")
    assert said is None if BLOCKS[text] is None else said.startswith(BLOCKS[text])


def test_a_mark_that_is_none_and_a_block_without_an_end_are_told():
    with pytest.raises(ValueError, match=r"page.md:1: no mark 'ilustration'"):
        read_blocks("page.md", "<!-- ilustration: needs Docker -->\n```\nx\n```")
    with pytest.raises(ValueError, match=r"page.md:2: the block has no end"):
        read_blocks("page.md", "\n```sh\nx\n")


@pytest.fixture
def shell(tmp_path):
    return Shell(tmp_path, tmp_path, {})


def block(text, language="sh"):
    return Block("page.md", 1, language, text)


FAILING = {
    "an option that is none": ("sh", "streamgauge engines --semantic\n", "exit code 2, not 0"),
    "a file that nobody has": ("sh", "streamgauge translate nobody.rq --to cqels\n", "exit code 2, not 0"),
    "another exit code than said": ("sh", "streamgauge engines   # exit code 1\n", "exit code 0, not 1"),
    "another output than shown": ("console", "$ streamgauge --version\nstreamgauge 99\n", "but prints"),
}


@pytest.mark.parametrize("case", FAILING)
def test_a_block_that_does_not_run_as_shown_fails(case, shell):
    language, text, words = FAILING[case]
    with pytest.raises(AssertionError, match=words):
        shell.run(block(text, language))


def test_lines_have_comments_quotes_and_exit_codes():
    text = "streamgauge check 'a#b' \\\n  --json  # the paper's, exit code 1\n# a comment\ncurl -s x | head\n"
    result = lines_of(text)
    assert [(item.text, item.code, item.simple) for item in result] == [
        ("streamgauge check 'a#b'    --json", 1, True),
        ("curl -s x | head", 0, False),
    ]


def test_output_may_leave_out_what_changes():
    assert same("at ...: 3 rows\n", "it said\nat 10:15:  3 rows\nand more")
    assert not same("at ...: 4 rows\n", "at 10:15: 3 rows\n")


def test_the_files_of_the_map_are_there():
    text = (ROOT / "docs" / "map.md").read_text()
    tables = text[text.index("## From an experiment file") :]
    named = re.findall(r"`(?!src/)([a-z_/]+(?:\.py|/))`", tables)
    assert len(named) > 40
    assert [item for item in named if not (ROOT / "src" / "streamgauge" / item).exists()] == []


@pytest.mark.parametrize("title", ["From an experiment file to a verdict", "From the text of a query to an answer"])
def test_a_way_through_the_code_has_twenty_files_at_most(title):
    text = (ROOT / "docs" / "map.md").read_text()
    part = text[text.index(f"## {title}") :][3:].split("\n## ")[0]
    assert 10 < part.count("\n| `") <= 20


def mistakes() -> set[str]:
    """The classes of the package that derive from MistakeError, by their names."""
    texts = (path.read_text() for path in (ROOT / "src" / "streamgauge").rglob("*.py"))
    classes = [item for text in texts for item in re.findall(r"^class (\w+)\(([\w., ]+)\):", text, re.M)]
    names = {"MistakeError"}
    while more := {name for name, bases in classes if names & set(re.findall(r"\w+", bases))} - names:
        names |= more
    return names


def test_every_class_of_error_has_a_remedy():
    text = (ROOT / "docs" / "faq.md").read_text()
    assert sorted(name for name in mistakes() if f"`{name}`" not in text) == []
    named = re.findall(r"`(\w+Error)`", text.partition("| error | remedy |")[2].partition("\n\n")[0])
    assert sorted(set(named) - mistakes()) == []
