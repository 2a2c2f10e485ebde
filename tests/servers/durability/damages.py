"""Damages as disks, file systems and people make them, drawn by a seed: of one file, or of the files of a folder."""

import random
import shutil
from pathlib import Path

PAGE = 4096


def flip(draw: random.Random, data: bytearray) -> None:
    """One to eight bits are others."""
    for _ in range(draw.choice((1, 1, 1, 2, 8))):
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)


def scribble(draw: random.Random, data: bytearray) -> None:
    """A few bytes are others."""
    at = draw.randrange(len(data))
    data[at : at + draw.randrange(1, 64)] = draw.randbytes(min(len(data) - at, draw.randrange(1, 64)))


def letter(draw: random.Random, data: bytearray) -> None:
    """One letter is another letter."""
    places = [at for at, byte in enumerate(data) if 97 <= byte < 122]
    if places:
        data[draw.choice(places)] += 1


def zero_page(draw: random.Random, data: bytearray) -> None:
    """A page is zeros."""
    at = draw.randrange(-(-len(data) // PAGE)) * PAGE
    data[at : at + PAGE] = bytes(len(data[at : at + PAGE]))


def zero_sector(draw: random.Random, data: bytearray) -> None:
    """A sector is zeros."""
    at = draw.randrange(-(-len(data) // 512)) * 512
    data[at : at + 512] = bytes(len(data[at : at + 512]))


def cut(draw: random.Random, data: bytearray) -> None:
    """The end is missing."""
    del data[draw.randrange(len(data)) :]


def cut_pages(draw: random.Random, data: bytearray) -> None:
    """Pages at the end are missing."""
    del data[draw.randrange(-(-len(data) // PAGE)) * PAGE :]


def cut_out(draw: random.Random, data: bytearray) -> None:
    """A piece in the middle is missing."""
    at = draw.randrange(len(data))
    del data[at : at + draw.choice((1, 100, PAGE, 3 * PAGE))]


def append(draw: random.Random, data: bytearray) -> None:
    """Garbage is behind the end."""
    data += draw.randbytes(draw.choice((1, 100, PAGE, 10_000)))


def swap_pages(draw: random.Random, data: bytearray) -> None:
    """Two pages are in each other's place."""
    many = len(data) // PAGE
    if many < 2:
        flip(draw, data)
        return
    one, two = (each * PAGE for each in draw.sample(range(many), 2))
    data[one : one + PAGE], data[two : two + PAGE] = data[two : two + PAGE], data[one : one + PAGE]


def repeat_page(draw: random.Random, data: bytearray) -> None:
    """A page is over another."""
    many = max(1, len(data) // PAGE)
    one, two = draw.randrange(many) * PAGE, draw.randrange(many) * PAGE
    data[two : two + PAGE] = data[one : one + PAGE]


def insert_page(draw: random.Random, data: bytearray) -> None:
    """A page is there twice, and all behind are later."""
    at = draw.randrange(max(1, len(data) // PAGE)) * PAGE
    data[at:at] = data[at : at + PAGE]


def empty(draw: random.Random, data: bytearray) -> None:
    """Nothing is left."""
    data.clear()


IN_PLACE = (
    flip,
    scribble,
    letter,
    zero_page,
    zero_sector,
    cut,
    cut_pages,
    cut_out,
    append,
    swap_pages,
    repeat_page,
    insert_page,
    empty,
)
OF_FILES = ("missing", "another's", "older")
KINDS = (*(each.__name__ for each in IN_PLACE), *OF_FILES)


def damage(folder: Path, files: list[str], others: dict[str, Path], draw: random.Random, kind: str) -> str:
    """Damage one of the ``files`` of a folder; what was done. ``others`` are folders with files of other states."""
    name = draw.choice(files)
    file = folder / name
    if kind == "missing":
        file.unlink()
    elif kind in others:
        source = others[kind] / name
        shutil.copyfile(source, file) if source.exists() else file.unlink()
    else:
        data = bytearray(file.read_bytes())
        if data:
            next(each for each in IN_PLACE if each.__name__ == kind)(draw, data)
        file.write_bytes(data)
    return f"{kind} of {name}"
