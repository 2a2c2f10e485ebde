"""SIGTERM ends a command as Ctrl-C does: what is printed at the end is printed, and the exit code says what it was."""

import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from streamgauge.cli.main import Termination

QUERY = """SELECT ?s FROM NAMED WINDOW <urn:w> ON <urn:st> [RANGE PT5S STEP PT5S]
WHERE { WINDOW <urn:w> { ?s <urn:p> ?o } }
"""
LINES = "".join(f'{{"t": {time}, "add": "<urn:a{time}> <urn:p> <urn:o> ."}}\n' for time in (0, 2000, 6000))


@pytest.fixture
def restored():
    """The handlers of both signals, put back."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def asked(tmp_path: Path, *more: str, background: bool) -> "subprocess.Popen[str]":
    """A query whose stream goes on, after its first answer; in the background Ctrl-C is ignored, as shells do it."""
    (tmp_path / "q.rq").write_text(QUERY)
    words = ["query", str(tmp_path / "q.rq"), "--stream", "-", "--json", *more]
    words = [sys.executable, "-m", "streamgauge.cli.main", *words]
    ignore = (lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)) if background else None
    pipe = subprocess.PIPE
    query = subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, text=True, preexec_fn=ignore)
    query.stdin.write(LINES)
    query.stdin.flush()
    assert more or '"<urn:a0>"' in query.stdout.readline()
    return query


@pytest.mark.server
@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "code", "background"),
    [(signal.SIGTERM, 143, False), (signal.SIGTERM, 143, True), (signal.SIGINT, 130, False)],
)
def test_a_query_that_is_ended_says_how_much_it_was(tmp_path, number, code, background):
    with asked(tmp_path, background=background) as query:
        query.send_signal(number)
        _, err = query.communicate(timeout=120)
    assert query.returncode == code
    assert re.search(r"3 elements; [01] answers?; time reached 6,000 ms", err)  # it may come while the first is counted
    assert "Traceback" not in err


@pytest.mark.server
def test_a_query_whose_sink_does_not_answer_ends_in_time(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        to = ("--to", f"webhook+http://me:hush@127.0.0.1:{silent.getsockname()[1]}/")
        with asked(tmp_path, *to, background=False) as query:
            silent.settimeout(120)
            with silent.accept()[0]:  # an answer is under way
                query.send_signal(signal.SIGTERM)
                begin = time.monotonic()
                _, err = query.communicate(timeout=120)
                assert time.monotonic() - begin < 5
    assert query.returncode == 143
    assert "1 answer not delivered: not accepted yet" in err
    assert "hush" not in err


def test_the_signal_does_what_the_handler_of_ctrl_c_does_then(restored):
    messages: list[int] = []
    with Termination():
        signal.signal(signal.SIGINT, lambda number, _frame: messages.append(number))
        signal.raise_signal(signal.SIGTERM)
    assert messages == [signal.SIGINT]


def interrupted(error: BaseException) -> None:
    """A command that the signal interrupts, and that ends with an error then."""
    try:
        signal.raise_signal(signal.SIGTERM)
    except KeyboardInterrupt:
        raise error from None


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(130)])
def test_the_exit_code_is_that_of_the_signal_that_came(restored, error):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with pytest.raises(SystemExit) as ended, Termination():
        interrupted(error)
    assert ended.value.code == 143


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(130), SystemExit(3), ValueError()])
def test_without_the_signal_nothing_changes(restored, error):
    with pytest.raises(type(error)) as ended, Termination():
        raise error
    assert ended.value is error


WITHIN_EXEC = """
import signal
from streamgauge.cli.main import Termination
with Termination():
    try:
        exec("signal.raise_signal(signal.SIGTERM)")
    except KeyboardInterrupt:
        raise SystemExit(130)
"""


@pytest.mark.server
def test_a_signal_while_a_text_is_executed_is_like_any_other(tmp_path):
    """Imports execute texts (of dataclasses), and CPython treats an interrupt there as one that nothing handles."""
    (tmp_path / "command.py").write_text(WITHIN_EXEC)
    assert subprocess.run([sys.executable, "-m", "command"], cwd=tmp_path, check=False).returncode == 143


def test_a_command_that_ends_by_itself_keeps_its_code(restored):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with pytest.raises(SystemExit) as ended, Termination():
        interrupted(SystemExit(1))
    assert ended.value.code == 1
