"""Mutants that no test can catch, with the proof: ``equivalent.toml``."""

import tomllib
from collections.abc import Mapping
from pathlib import Path

from tests.mutants.mutant import Mutant

FILE = Path(__file__).with_name("equivalent.toml")

Key = tuple[str, str, str, str]


def proofs(path: Path = FILE) -> Mapping[Key, str]:
    """The proof by file, function and change; ValueError for an entry that says less, or is there twice."""
    results: dict[Key, str] = {}
    for entry in tomllib.loads(path.read_text("utf-8")).get("equivalent", []):
        key = entry["file"], entry.get("function", ""), entry["before"], entry["after"]
        if key in results or not entry["proof"].strip():
            raise ValueError(f"{path.name}: {key} is there twice, or has no proof")
        results[key] = entry["proof"].strip()
    return results


def entry(mutant: Mutant) -> str:
    """The lines of ``equivalent.toml`` for a mutant, the proof left to be written."""
    said = {"file": mutant.file, "function": mutant.function, "before": mutant.before, "after": mutant.after}
    return "\n".join(["[[equivalent]]", *(f"{name} = {_literal(text)}" for name, text in said.items()), 'proof = ""'])


def _literal(text: str) -> str:
    if "'" not in text:
        return f"'{text}'"
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
