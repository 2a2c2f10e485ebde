"""Every file that is read back: no changed byte and no cut gives another answer without a word."""

import random
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from streamgauge.formats.run import RunError, read_run, write_run
from streamgauge.query import parse
from tests.boundaries.sealed_files import KINDS
from tests.fuzz.bounds import outcome

SUITE, PROVE = 25, 1000


def one_byte(draw: random.Random, data: bytearray) -> None:
    """One byte is another."""
    place = draw.randrange(len(data))
    data[place] = draw.choice([value for value in range(256) if value != data[place]])


def cut(draw: random.Random, data: bytearray) -> None:
    """The end is missing."""
    del data[draw.randrange(len(data)) :]


Damage = Callable[[random.Random, bytearray], None]
DAMAGES: tuple[Damage, ...] = (one_byte, one_byte, one_byte, cut)


@pytest.fixture(scope="module", params=sorted(KINDS))
def sealed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path, object]:
    """A kind of file, a folder with such files, and what is read from it."""
    folder = tmp_path_factory.mktemp("files") / "whole"
    folder.mkdir()
    KINDS[request.param].write(folder)
    return request.param, folder, KINDS[request.param].read(folder)


def damaged(kind: str, whole: Path, before: object, seed: int, damages: Sequence[Damage] = DAMAGES) -> str:
    """Damage one file, read all, and put it back: ``same``, ``refused``, or what went wrong."""
    draw = random.Random(seed)
    files = sorted(file for file in whole.rglob("*") if file.is_file())
    file = draw.choice(files)
    content = file.read_bytes()
    data = bytearray(content)
    draw.choice(damages)(draw, data)
    file.write_bytes(data)
    try:
        after = outcome(lambda: KINDS[kind].read(whole))
    finally:
        file.write_bytes(content)
    if isinstance(after, str):
        assert (KINDS[kind].name or file.name) in after, f"seed {seed}: {file} is not named in: {after}"
        assert "\n" not in after, f"seed {seed}: more than a sentence: {after}"
        return "refused"
    assert after == before, f"seed {seed}: another answer without a word after damage to {file}"
    return "same"


def test_no_damage_gives_another_answer_without_a_word(sealed):
    results = [damaged(*sealed, seed) for seed in range(SUITE)]
    assert results.count("refused") >= SUITE * KINDS[sealed[0]].refused


@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize("table", ["answers", "rows", "fed", "samples", "static"])
def test_a_lost_part_is_refused(tmp_path, table, listed):
    KINDS["run folder"].write(tmp_path)
    max((tmp_path / f"{table}.parquet").glob("*.parquet")).unlink()
    if not listed:
        (tmp_path / f"{table}.parquet" / "_manifest.json").unlink()
    with pytest.raises(RunError, match=rf"{table}\.parquet|answers\.parquet"):
        read_run(tmp_path, parse)


@pytest.mark.parametrize("table", ["fed", "samples"])
def test_a_part_of_another_run_is_refused(tmp_path, table):
    for number in (1, 2):
        KINDS["run folder"].write(tmp_path / str(number))
    run = read_run(tmp_path / "2", parse)
    other = replace(run, fed=run.fed[1:], samples=run.samples[1:])
    write_run(tmp_path / "2", other)
    for part in (tmp_path / "2" / f"{table}.parquet").iterdir():
        shutil.copy(part, tmp_path / "1" / f"{table}.parquet")
    with pytest.raises(RunError, match=rf"{table}\.parquet: its files are not those of run.json"):
        read_run(tmp_path / "1", parse)


def test_what_another_program_rewrote_is_read(tmp_path):
    KINDS["run folder"].write(tmp_path)
    before = read_run(tmp_path, parse)
    for part in (tmp_path / "fed.parquet").glob("*.parquet"):
        pq.write_table(pq.read_table(part), part)
    assert read_run(tmp_path, parse) == before


@pytest.mark.prove
def test_none_of_a_thousand_bytes_gives_another_answer_without_a_word(sealed, capsys):
    results = [damaged(*sealed, seed, (one_byte,)) for seed in range(SUITE, SUITE + PROVE)]
    with capsys.disabled():
        print(f"\n{sealed[0]}: { ({result: results.count(result) for result in sorted(set(results))}) }")
    assert results.count("refused") > PROVE * KINDS[sealed[0]].refused
