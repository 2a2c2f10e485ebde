"""What an engine does differently from its semantics, listed beside it in ``deviations.toml`` (docs/conformance.md).

Names, reasons and sources are written by hand, findings and cases by ``certify --update``.
"""

import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TypeAlias

from streamgauge.formats.fields import FieldError, decode
from streamgauge.formats.texts import read_text
from streamgauge.model.mistake import MistakeError

HEAD = """# What this engine does differently from its declared semantics (docs/conformance.md). `findings` and `cases`
# are written by `streamgauge certify --update`, which keeps the order of the entries and all else.
"""


Explained: TypeAlias = dict[str, Sequence[str]]
"""Deviating tasks with their possible findings."""


class DeviationError(MistakeError, ValueError):
    """A list of deviations that is not as it should be; the sentence names file and entry."""


@dataclass(frozen=True)
class Deviation:
    """One way in which an engine deviates: ``findings`` are the oracle's, ``cases`` name the tasks that show them.

    ``flaky`` says why the tasks come out right now and then; empty when they never do.
    """

    name: str
    why: str
    source: str
    findings: tuple[str, ...]
    cases: tuple[str, ...]
    flaky: str = ""


def read(file: Path | None) -> tuple[Deviation, ...]:
    """The deviations of a file, none when there is no file; DeviationError names what is wrong."""
    if file is None or not file.exists():
        return ()
    try:
        data = tomllib.loads(read_text(file))
        if set(data) - {"deviation"}:
            raise FieldError(f"{', '.join(sorted(set(data) - {'deviation'}))} is unknown: only [[deviation]] tables")
        found = [decode(Deviation, table, f"deviation {n}") for n, table in enumerate(data.get("deviation", ()), 1)]
    except (tomllib.TOMLDecodeError, FieldError) as error:
        raise DeviationError(f"{file}: {error}") from error
    _refuse_twice(file, "name", [each.name for each in found])
    _refuse_twice(file, "case", [case for each in found for case in each.cases])
    return tuple(found)


def _refuse_twice(file: Path, what: str, names: Sequence[str]) -> None:
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise DeviationError(f"{file}: {what} {twice[0]!r} is listed twice")


def write(file: Path, deviations: Iterable[Deviation]) -> None:
    """Write the list; entries without a case are left out, and no file stays without an entry."""
    kept = [each for each in deviations if each.cases]
    if not kept:
        file.unlink(missing_ok=True)
        return
    file.write_text(HEAD + "".join(map(_table, kept)), encoding="utf-8")


def _table(deviation: Deviation) -> str:
    lines = ["", "[[deviation]]"]
    for field in fields(Deviation):
        value = getattr(deviation, field.name)
        if isinstance(value, tuple):
            lines += [f"{field.name} = [", *(f"  {_quoted(each)}," for each in value), "]"]
        elif value or field.name != "flaky":
            lines.append(f"{field.name} = {_quoted(value)}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def updated(
    listed: Sequence[Deviation],
    explained: Mapping[str, Sequence[str]],
    tried: Iterable[str],
    contradicted: Set[str] = frozenset(),
) -> tuple[Deviation, ...]:
    """The list with the tasks that deviate now, each under an entry that has one of its findings.

    That is the entry where the task is listed already, else the first. ``explained`` has every deviating task with its
    possible findings. What no entry explains comes under as few new ones as do, those that are ``contradicted`` by
    tasks that are right only where no other does; their reasons are to be written by hand. Tasks that were not
    ``tried`` stay where they are.
    """
    left, known = dict(explained), set(tried)
    mine: list[Explained] = []
    for old in listed:
        stays, left = _split(left, {case for case in old.cases if case in left and _shows(old, left[case])})
        mine.append(stays)
    result = []
    for old, stays in zip(listed, mine, strict=True):
        comes, left = _split(left, {case for case, found in left.items() if _shows(old, found)})
        result.append(_kept(old, stays | comes, [case for case in old.cases if case not in known]))
    while left:
        possible = sorted({each for found in left.values() for each in found})
        finding = max(possible, key=lambda each: (each not in contradicted, _explains(left, each)))
        new, left = _split(left, {case for case, found in left.items() if finding in found})
        result.append(Deviation(finding, "", "", (finding,), tuple(sorted(new))))
    return tuple(result)


def shown(listed: Iterable[Deviation], findings: Sequence[str]) -> bool:
    """Whether an entry has one of the findings."""
    return any(_shows(each, findings) for each in listed)


def _shows(deviation: Deviation, findings: Sequence[str]) -> bool:
    return not set(deviation.findings).isdisjoint(findings)


def _kept(old: Deviation, explained: Explained, untried: Sequence[str]) -> Deviation:
    """The entry with its tasks of now and those that were not tried, and the findings that they show."""
    shown = [each for each in old.findings if untried or any(each in found for found in explained.values())]
    return replace(old, findings=tuple(shown), cases=tuple(sorted({*untried, *explained})))


def _split(explained: Explained, taken: Set[str]) -> tuple[Explained, Explained]:
    """The tasks that are taken, and the others."""
    others = {case: found for case, found in explained.items() if case not in taken}
    return {case: explained[case] for case in explained if case in taken}, others


def _explains(explained: Explained, finding: str) -> int:
    return sum(finding in found for found in explained.values())
