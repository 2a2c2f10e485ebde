"""Completion in shells: commands, options and names, by what `completion` prints."""

import shutil
import subprocess
import sys

import pytest

from streamgauge.cli.completion import COMPLETE_VARIABLE


@pytest.fixture
def complete(command, monkeypatch):
    """What bash is offered for these words, the last one begun."""

    def offered(*words):
        monkeypatch.setenv(COMPLETE_VARIABLE, "complete_bash")
        monkeypatch.setenv("COMP_WORDS", " ".join(["streamgauge", *words]))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        output = command()
        assert output.code == 0
        return output.out.split()

    return offered


@pytest.mark.parametrize(
    ("words", "some"),
    [
        (("ex",), {"expect", "explain"}),
        (("broker", ""), {"serve", "verify", "bridge"}),
        (("expect", "--sem"), {"--semantics"}),
        (("expect", "q.rq", "--semantics", "csp"), {"csparql", "csparql-0.9.7", "csparql-0.9.7-wall"}),
        (("query", "q.rq", "--engine", "li"), {"live"}),
        (("query", "q.rq", "--format", ""), {"table", "jsonl", "nquads", "csv"}),
        (("generate", "wea"), {"weather"}),
        (("generate", "weather", "--format", "nq"), {"nquads"}),
        (("translate", "q.rq", "--to", "c"), {"cqels", "csparql"}),
        (("capacity", "x.toml", "--axis", ""), {"load", "window", "slide", "time-unit"}),
        (("broker", "serve", "--strategy", "inc"), {"incremental"}),
        (("fragments", "serve", "--method", "re"), {"reification", "reifiers"}),
        (("certify", "yas"), {"yasper"}),
        (("certify", "live", "--semantics", "ow"), {"own"}),
        (("check", "run", "--rules", ""), {"csrbench", "yabench"}),
        (("completion", ""), {"bash", "zsh", "fish"}),
    ],
)
def test_what_is_begun_is_completed(complete, words, some):
    result = complete(*words)
    assert some <= set(result)
    assert all(line.startswith(words[-1]) for line in result)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "ZSH"])
def test_each_shell_has_its_script(command, shell):
    code, out, _ = command("completion", shell)
    assert code == 0
    assert f"{COMPLETE_VARIABLE}=complete_{shell.lower()}" in out
    assert "streamgauge" in out


def test_the_shell_is_the_one_that_is_used(command, monkeypatch):
    monkeypatch.setenv("SHELL", "/usr/bin/fish")
    assert f"{COMPLETE_VARIABLE}=complete_fish" in command("completion").out
    monkeypatch.setenv("SHELL", "/bin/dash")
    code, _, err = command("completion")
    assert code == 2
    assert "name the shell: bash, zsh, fish (the variable SHELL names dash)" in " ".join(err.split())


def test_it_is_put_where_the_shell_reads_it(command, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    code, out, _ = command("completion", "fish", "--install")
    file = tmp_path / ".config" / "fish" / "completions" / "streamgauge.fish"
    assert code == 0
    assert str(file) in out
    assert "complete_fish" in file.read_text()


@pytest.mark.server
@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_itself_completes(tmp_path):
    program = tmp_path / "streamgauge"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m streamgauge "$@"\n')
    program.chmod(0o755)
    message = f"""
        PATH={tmp_path}:$PATH
        source <(streamgauge completion bash)
        COMP_WORDS=(streamgauge frag) COMP_CWORD=1
        $(complete -p streamgauge | sed 's/.*-F \\([^ ]*\\) .*/\\1/') streamgauge
        echo "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(["bash", "--norc", "-c", message], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["fragments"], done.stderr
