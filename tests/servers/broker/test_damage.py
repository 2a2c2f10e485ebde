"""Drawn damages of a journal: each is refused with one sentence and found by ``verify``, or does no harm at all."""

import random
import shutil
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from streamgauge.cli.main import app, main
from streamgauge.servers.broker import recovery
from streamgauge.servers.broker.publications import Receipt
from streamgauge.servers.broker.sqlite import SqliteJournal
from streamgauge.servers.sealed.soundness import JournalError
from tests.servers.broker.world import BASE, broker, listening, select, student
from tests.servers.damages import KINDS, OF_FILES, damage

FILES = ["journal", "journal-wal", "journal-mark"]
PUBLISHED = 25


def opened(folder):
    return broker(journal=SqliteJournal(folder / "journal"))


def state(made):
    """Everything that a broker answers from its journal."""
    rows = {channel.name: (made.rows(channel.name)[0], set(made.rows(channel.name)[1])) for channel in made.channels()}
    subscription = {name: made.subscribe(name, "me", lambda: None).take() for name in rows}
    return rows, set(made.facts()), subscription, made.number, made._journal.keys()


def fill(folder, first=0):
    folder.mkdir()
    made = opened(folder)
    made.load(BASE)
    listening(made, ["students", "courses"])
    for n in range(first, first + PUBLISHED):
        made.publish(student(n), key=f"k{n}")
        if n % 5 == 4:
            made.delete(student(n - 2), key=f"d{n}")
        if n == first + PUBLISHED // 2:
            copied(folder, folder.with_name(f"{folder.name}-older"))
    made.create_channel("late", select("?x :takes ?c"))
    made.subscribe("late", "me", lambda: None)
    made.unsubscribe("courses", "me")
    made.subscribe("courses", "me", lambda: None)
    made.publish(student(first + PUBLISHED), key="last")
    return made


def copied(folder, to):
    shutil.copytree(folder, to)
    return to


@pytest.fixture(scope="module")
def journals(tmp_path_factory):
    """Folders by how the broker ended: killed, with its log; closed, without; what it answers; other journals."""
    root = tmp_path_factory.mktemp("journals")
    made, other = fill(root / "one"), fill(root / "other", 1000)
    killed, other_killed = copied(root / "one", root / "killed"), copied(root / "other", root / "other-killed")
    answers = state(made)
    made.close()
    other.close()
    older = root / "one-older"
    closed_older = copied(older, root / "closed-older")
    opened(closed_older).close()
    return {
        "killed": (killed, {"another's": other_killed, "older": older}),
        "closed": (root / "one", {"another's": root / "other", "older": closed_older}),
    }, answers


def outcome(folder, answers):
    """What became of a damaged journal: refused, or the answers that it gives and goes on with."""
    try:
        made = opened(folder)
    except JournalError as error:
        message = str(error)
        assert message.startswith(str(folder / "journal")), message
        assert "\n" not in message
        assert any(
            word in message for word in ("--save-to NEW", "restore it from a copy", "no journal can be kept here")
        )
        return "refused"
    try:
        assert state(made) == answers
        assert made.publish(student(0), key="k0") == Receipt(1, repeated=True)
        assert made.publish(student(7777)).number == answers[3] + 1
    finally:
        made.close()
    return "harmless"


@pytest.mark.slow
@pytest.mark.parametrize("ended", ["killed", "closed"])
@pytest.mark.parametrize(
    "many",
    [48, pytest.param(400, marks=[pytest.mark.prove, pytest.mark.heavy("400 journals are checked, opened and read")])],
)
def test_a_damaged_journal_is_refused_or_answers_as_before(journals, tmp_path, ended, many):
    folders, answers = journals
    whole, others = folders[ended]
    files = [name for name in FILES if (whole / name).exists()]
    results = {"refused": 0, "harmless": 0}
    for number in range(many):
        draw, folder = random.Random(number), copied(whole, tmp_path / str(number))
        what = damage(folder, files, others, draw, KINDS[number % len(KINDS)])
        try:
            became = verified(folder)
            result = outcome(copied(folder, tmp_path / f"{number}-opened"), answers)
        except Exception as error:
            raise AssertionError(f"damage {number}: {what}") from error
        assert result == "harmless" or became == "damaged", (number, what)
        results[result] += 1
        shutil.rmtree(folder)
        shutil.rmtree(tmp_path / f"{number}-opened")
    assert results["refused"] > many // 4, results


def verified(folder):
    path = folder / "journal"
    if not any(folder.iterdir()):
        return "nothing"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    result = recovery.verify(path)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before, "verify changed the files"
    return "sound" if result.whole else "damaged"


def test_whole_journals_are_sound(journals):
    for folder, _ in journals[0].values():
        result = recovery.verify(folder / "journal")
        assert result.whole, result.damages
        assert result.sound["rows of retry"] > PUBLISHED


def test_a_refused_journal_keeps_its_log(journals, tmp_path):
    folder = copied(journals[0]["killed"][0], tmp_path / "one")
    log = folder / "journal-wal"
    whole = log.read_bytes()
    log.write_bytes(whole[: len(whole) // 2])
    cut = log.read_bytes()
    for _ in range(2):
        with pytest.raises(JournalError, match="acknowledged changes are missing"):
            opened(folder)
        assert log.read_bytes() == cut
    log.write_bytes(whole)
    opened(folder).close()


def test_a_log_that_a_killed_broker_had_not_put_back_is_used(journals, tmp_path):
    folder = copied(journals[0]["killed"][0], tmp_path / "one")
    (folder / "journal-wal").rename(folder / "journal-wal-before")
    assert outcome(folder, journals[1]) == "harmless"
    assert not (folder / "journal-wal-before").exists()


@pytest.mark.server
def test_a_journal_that_a_broker_has_open_is_not_looked_at(journals, tmp_path):
    path = copied(journals[0]["closed"][0], tmp_path / "one") / "journal"
    program = (
        "import sys; from pathlib import Path; from streamgauge.servers.broker.sqlite import SqliteJournal;"
        "journal = SqliteJournal(Path(sys.argv[1])); print('open', flush=True); sys.stdin.read()"
    )
    words = [sys.executable, "-c", program, str(path)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "open\n"
        with pytest.raises(JournalError, match="a server has it open: stop that first"):
            recovery.verify(path)
        holder.stdin.close()
    assert recovery.verify(path).whole


def test_the_command_line_says_one_sentence(journals, tmp_path, monkeypatch, capsys):
    folder = copied(journals[0]["closed"][0], tmp_path / "one")
    data = bytearray((folder / "journal").read_bytes())
    data[data.index(b'<urn:t:c1><urn:t:name>"Course 1"') + 30] ^= 1
    (folder / "journal").write_bytes(data)
    monkeypatch.setattr(sys, "argv", ["streamgauge", "broker", "serve", "--journal", str(folder / "journal")])
    with pytest.raises(SystemExit) as ended:
        main()
    output = capsys.readouterr().err
    assert (ended.value.code, output.count("\n")) == (2, 1), output
    assert "table fact, row" in output
    assert "--save-to NEW" in output


def test_what_was_not_acknowledged_may_be_torn(tmp_path):
    """The last record cut in the middle of its write, before the witness: that is a crash, not damage."""
    folder = tmp_path / "one"
    folder.mkdir()
    made = opened(folder)
    made.load(BASE)
    made.publish(student(1))
    before = copied(folder, tmp_path / "before")
    size = (folder / "journal-wal").stat().st_size
    made.publish(student(2))
    torn = (folder / "journal-wal").read_bytes()
    assert len(torn) > size
    for length in (size + 1, size + 24, (size + len(torn)) // 2, len(torn) - 1):
        crashed = copied(before, tmp_path / f"crashed{length}")
        (crashed / "journal-wal").write_bytes(torn[:length])
        assert verified(crashed) == "sound"
        again = opened(crashed)
        assert again.number == 1
        again.close()
    made.close()


def test_what_is_sound_is_saved(journals, tmp_path):
    folders, answers = journals
    folder = copied(folders["closed"][0], tmp_path / "one")
    data = bytearray((folder / "journal").read_bytes())
    data[data.index(b'<urn:t:c1><urn:t:name>"Course 1"') + 30] ^= 1
    (folder / "journal").write_bytes(data)
    run = CliRunner().invoke(app, ["broker", "verify", str(folder / "journal"), "--save-to", str(tmp_path / "new")])
    assert run.exit_code == 1, run.output
    assert "table fact, row" in run.output
    assert "lost:" in run.output
    made = broker(journal=SqliteJournal(tmp_path / "new"))
    _, facts, _, number, keys = state(made)
    assert answers[1] - facts == {("<urn:t:c1>", "<urn:t:name>", '"Course 1"')}
    assert (number, keys) == answers[3:]
    made.close()
    assert CliRunner().invoke(app, ["broker", "verify", str(tmp_path / "new")]).exit_code == 0


def test_a_first_page_that_is_gone_does_not_take_the_rest_along(journals, tmp_path):
    folder = copied(journals[0]["closed"][0], tmp_path / "one")
    data = bytearray((folder / "journal").read_bytes())
    data[:4096] = bytes(4096)
    (folder / "journal").write_bytes(data)
    with pytest.raises(JournalError, match="--save-to NEW"):
        opened(folder)
    recovery.save(folder / "journal", tmp_path / "new")
    made = broker(journal=SqliteJournal(tmp_path / "new"))
    assert set(made.facts()) == journals[1][1]
    made.close()


@pytest.mark.parametrize("kind", OF_FILES)
def test_a_mark_that_is_gone_is_made_again(journals, tmp_path, kind):
    folder = copied(journals[0]["closed"][0], tmp_path / "one")
    (folder / "journal-mark").unlink()
    assert outcome(folder, journals[1]) == "harmless"
    assert (folder / "journal-mark").stat().st_size > 0
