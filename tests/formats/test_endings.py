"""How programs end: exit codes in words, memory, missing classes; how long they may take to get ready."""

import sys

import pytest

from streamgauge.formats.pipe import (
    PipedSession,
    PipeError,
    Task,
    advice,
    in_words,
    kernel_kills,
    set_up_wrongly,
    start_limit,
)
from streamgauge.model.semantics import Semantics
from streamgauge.semantics.profiles import RSPQL


@pytest.mark.parametrize("code", [-9, 137])
def test_a_program_killed_for_memory_says_so(code: int) -> None:
    said = in_words(code, 4, 5)
    assert said.startswith(f"exit code {code}: killed, and the kernel says")
    assert "JAVA_TOOL_OPTIONS=-Xmx8g" in said


@pytest.mark.parametrize("counts", [(None, None), (4, 4), (4, None)])
def test_a_program_killed_by_somebody_says_what_it_may_have_been(counts) -> None:
    said = in_words(-9, *counts)
    assert "the kernel says" not in said
    assert "as the kernel does when memory runs out" in said


@pytest.mark.parametrize(
    ("code", "message"),
    [(1, "exit code 1"), (3, "exit code 3"), (-11, "exit code -11 (signal SIGSEGV)"),
     (134, "exit code 134 (signal SIGABRT)"), (127, "exit code 127"), (255, "exit code 255")],
)  # fmt: skip
def test_other_exit_codes(code: int, message: str) -> None:
    assert in_words(code, 1, 2) == message


def test_the_count_of_the_kernel(tmp_path) -> None:
    (tmp_path / "vmstat").write_text("nr_free_pages 12\noom_kill 7\noom_killer 9\n")
    assert kernel_kills(tmp_path / "vmstat") == 7
    assert kernel_kills(tmp_path / "absent") is None


def test_a_heap_that_is_full_names_the_option() -> None:
    assert "-Xmx8g" in advice('Exception in thread "main" java.lang.OutOfMemoryError: Java heap space')
    assert advice("java.lang.IllegalStateException: closed") == ""


@pytest.mark.parametrize(
    "failure",
    [
        "the engine ended with exit code 1; its last words: java.lang.NoClassDefFoundError: it/unimi/dsi/fastutil/Map",
        "the engine ended with exit code 1; its last words: java.lang.NoSuchMethodError: 'void x.Y.z()'",
        "the engine ended with exit code 1; its last words: Error: Could not find or load main class x.Main",
        "the engine ended with exit code 1; its last words: ModuleNotFoundError: No module named 'rdflib'",
        "the engine ended with exit code 1; its last words: Error: Cannot find module 'rsp-js'",
        "the engine ended with exit code 134 (signal SIGABRT); its last words: # A fatal error has been detected",
        "the engine ended with exit code -11 (signal SIGSEGV) after 3 answers; its standard error is empty",
        "the engine ended with exit code 137: killed from outside, as the kernel does when memory runs out",
        "the engine ended with exit code 3; its last words: java.lang.OutOfMemoryError: Java heap space",
    ],
)
def test_what_is_no_deviation(failure: str) -> None:
    assert set_up_wrongly(failure)


@pytest.mark.parametrize(
    "failure",
    [
        "the engine ended with exit code 1; its last words: java.lang.IllegalArgumentException: element 3",
        "the engine ended with exit code 1; its last words: ValueError: no aggregates",
        "the engine was still running after its time limit of 2 s, so it was ended",
        "line 3 of the engine's output is not an answer: not a line of JSON",
        "the engine was not ready within 3 s",
    ],
)
def test_what_may_be_a_deviation(failure: str) -> None:
    assert set_up_wrongly(failure) is None


def test_the_start_limit_grows_with_the_load_and_is_an_option() -> None:
    assert start_limit(60, 0.2, {}) == 60
    assert start_limit(60, 4, {}) == 240
    assert start_limit(60, 400, {}) == 600
    assert start_limit(60, 4, {"STREAMGAUGE_START_LIMIT_S": "90.5"}) == 90.5
    assert start_limit(60, 1, {"STREAMGAUGE_START_LIMIT_S": "soon"}) == 60
    assert start_limit(60, 1, {"STREAMGAUGE_START_LIMIT_S": "0"}) == 60


def piped(code: str, semantics: Semantics = RSPQL) -> str:
    with pytest.raises(PipeError) as raised:
        PipedSession([sys.executable, "-c", code], Task("", "rspql", semantics), lambda _answer: None).close()
    return str(raised.value)


@pytest.mark.server
def test_a_session_on_the_pipe_says_how_its_program_ended(monkeypatch) -> None:
    ready = "import os, sys\nsys.stdin.readline()\nprint('{\"ready\":true}', flush=True)\n"
    assert "exit code -9: killed" in piped(f"{ready}os.kill(os.getpid(), 9)")
    assert "memory ran out" in piped(f"{ready}raise MemoryError")
    monkeypatch.setenv("STREAMGAUGE_START_LIMIT_S", "0.3")
    said = piped("import time\ntime.sleep(60)")
    assert "was not ready within 0.3 s (STREAMGAUGE_START_LIMIT_S allows more)" in said
