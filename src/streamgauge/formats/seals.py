"""Seals: files that are read back contain the SHA-256 of their content, so that damaged ones are refused, not judged.

The seal of a JSON object is its last member. That of a Parquet file is between its pages and its footer, where readers
skip it: the footer refers to pages by their offsets, which do not change. The digest is that of the file without the 40
bytes of the seal, so it covers the footer and its statistics, unlike page checksums.

Worked example: a Parquet file of the bytes P (pages), F (footer), N (the length of F) and ``PAR1`` becomes
P, ``SGSEAL01``, SHA-256 of P F N PAR1, F, N, ``PAR1``.

Files in foreign formats (N-Triples, SPARQL, lines of JSON) have their digests beside them, in the format of
``sha256sum``: those of a folder in its file ``SHA256SUMS``, that of a file in ``NAME.sha256``.

A file without a seal was written by another program, and is not checked.
"""

import json
import os
from collections.abc import Mapping
from hashlib import file_digest, sha256
from pathlib import Path
from struct import Struct
from typing import Any, BinaryIO, Final

from streamgauge.model.mistake import MistakeError

MEMBER: Final = "seal"
"""The member of a JSON object that seals the others."""

_MAGIC: Final = b"SGSEAL01"
_SEAL_SIZE: Final = len(_MAGIC) + sha256().digest_size
_TAIL: Final = Struct("<I4s")
_PARQUET: Final = b"PAR1"
_BLOCK: Final = 1 << 20


class SealError(MistakeError, ValueError):
    """A file whose content differs from its seal; the sentence names the file."""

    def __init__(self, file: str | Path, advice: str = "") -> None:
        super().__init__(
            f"{file}: damaged: its content is not what was written (SHA-256): restore it from a copy, "
            f"or make it again{advice}"
        )


def seal(data: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON object with its seal as the last member, replacing an earlier one; values as they will be read back."""
    # Through JSON and back: tuples and numeric keys are read back as other values, and the digest is of those.
    content: dict[str, Any] = json.loads(json.dumps({name: value for name, value in data.items() if name != MEMBER}))
    return content | {MEMBER: _json_digest(content)}


def unseal(data: dict[str, Any], file: str | Path) -> dict[str, Any]:
    """A JSON object without its seal, which is checked if present; SealError."""
    content = {name: value for name, value in data.items() if name != MEMBER}
    if MEMBER in data and data[MEMBER] != _json_digest(content):
        raise SealError(file, f"; if it was changed on purpose, remove its member {MEMBER!r}")
    return content


def _json_digest(content: Mapping[str, Any]) -> str:
    """The SHA-256 (hex) of an object's content, independent of white space and the order of members."""
    return sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def seal_beside(path: Path) -> None:
    """Write the digests of a file, or of all files of a folder, beside them; OSError."""
    sums = _sums(path)
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file() and file != sums)
    lines = [f"{_file_digest(file)}  {file.relative_to(sums.parent).as_posix()}\n" for file in files]
    sums.write_text("".join(lines), "utf-8")


def check_beside(path: Path) -> bool:
    """Check the digests beside a file or in a folder; false if there are none. SealError names a damaged file."""
    sums = _sums(path)
    if not sums.is_file():
        return False
    for line in sums.read_text("utf-8", "replace").splitlines():
        digest, _, name = line.partition("  ")
        file = sums.parent / name
        if not name or not file.is_file() or _file_digest(file) != digest:
            raise SealError(f"{file} (listed in {sums})", f"; if it was changed on purpose, remove {sums.name}")
    return True


def _sums(path: Path) -> Path:
    return path / "SHA256SUMS" if path.is_dir() else path.with_name(f"{path.name}.sha256")


def _file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def seal_parquet(path: Path) -> None:
    """Seal a Parquet file in place, unless it is sealed; OSError."""
    with path.open("r+b") as file:
        begin = _footer(file)
        if begin is None or _sealed(file, begin) is not None:
            return
        file.seek(begin)
        footer = file.read()
        digest = _digest(file, begin, footer)
        file.seek(begin)
        # The footer moves 40 bytes on, and stays at the end, where readers look for it.
        file.write(_MAGIC + digest + footer)


def check_parquet(path: Path) -> bytes | None:
    """The digest of a sealed Parquet file, ``None`` for one without a seal; SealError, OSError."""
    with path.open("rb") as file:
        begin = _footer(file)
        digest = None if begin is None else _sealed(file, begin)
        if begin is None or digest is None:
            return None
        file.seek(begin)
        # The pages without the 40 bytes of the seal, and then the footer: what the file was before it was sealed.
        if _digest(file, begin - _SEAL_SIZE, file.read()) != digest:
            raise SealError(path)
        return digest


def parquet_seal(path: Path) -> str | None:
    """The digest (hex) in a Parquet file, unchecked; ``None`` without a seal. OSError."""
    with path.open("rb") as file:
        begin = _footer(file)
        digest = None if begin is None else _sealed(file, begin)
    return None if digest is None else digest.hex()


def _footer(file: BinaryIO) -> int | None:
    """The offset of a Parquet file's footer; ``None`` for other files, which their reader refuses."""
    size = file.seek(0, os.SEEK_END)
    if size < _TAIL.size:
        return None
    file.seek(size - _TAIL.size)
    length, magic = _TAIL.unpack(file.read(_TAIL.size))
    begin: int = size - _TAIL.size - length
    return begin if magic == _PARQUET and begin >= 0 else None


def _sealed(file: BinaryIO, begin: int) -> bytes | None:
    """The digest in the seal before a footer."""
    if begin < _SEAL_SIZE:
        return None
    file.seek(begin - _SEAL_SIZE)
    seal = file.read(_SEAL_SIZE)
    return seal[len(_MAGIC) :] if seal.startswith(_MAGIC) else None


def _digest(file: BinaryIO, size: int, footer: bytes) -> bytes:
    """The SHA-256 of the first bytes of a file and a footer."""
    digest, block = sha256(), memoryview(bytearray(_BLOCK))
    file.seek(0)
    while size > 0 and (count := file.readinto(block[: min(size, _BLOCK)])):  # type: ignore[attr-defined]
        digest.update(block[:count])
        size -= count
    digest.update(footer)
    return digest.digest()
