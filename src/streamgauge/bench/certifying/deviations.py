"""What an engine does differently from its semantics, listed beside it in ``deviations.toml`` (docs/conformance.md).

Names, reasons and sources are written by hand, findings and cases by ``certify --update``.
"""

import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from streamgauge.wire.fields import FieldError, decode

HEAD = """# What this engine does differently from its declared semantics. `finding` and `cases` are written by
# `streamgauge certify --update`, which keeps `name`, `why`, `source` and `flaky`. See docs/conformance.md.
"""


class DeviationError(ValueError):
    """A list of deviations that is not as it should be; the sentence names file and entry."""


@dataclass(frozen=True)
class Deviation:
    """One way in which an engine deviates: ``finding`` is the oracle's, ``cases`` name the tasks that it explains.

    ``flaky`` says why the tasks come out right now and then; empty when they never do.
    """

    name: str
    why: str
    source: str
    finding: str
    cases: tuple[str, ...]
    flaky: str = ""


def read(file: Path | None) -> tuple[Deviation, ...]:
    """The deviations of a file, none when there is no file; DeviationError names what is wrong."""
    if file is None or not file.exists():
        return ()
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
        if set(data) - {"deviation"}:
            raise FieldError(f"{', '.join(sorted(set(data) - {'deviation'}))} is unknown: only [[deviation]] tables")
        found = [decode(Deviation, table, f"deviation {n}") for n, table in enumerate(data.get("deviation", ()), 1)]
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, FieldError) as error:
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
        if field.name == "cases":
            lines += ["cases = [", *(f"  {_quoted(case)}," for case in value), "]"]
        elif value or field.name != "flaky":
            lines.append(f"{field.name} = {_quoted(value)}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def updated(
    listed: Sequence[Deviation], explained: Mapping[str, Sequence[str]], seen: Iterable[str]
) -> tuple[Deviation, ...]:
    """The list with the tasks that deviate now under as few findings as explain them, those that are listed first.

    ``explained`` has every deviating task with its possible findings; ``seen`` are all tasks that were tried, others
    stay where they are. A finding that is new has no reason yet: it is to be written by hand.
    """
    tried = set(seen)
    found: dict[str, set[str]] = {}
    left = dict(explained)
    for finding in _ranked([each.finding for each in listed], explained):
        mine = {case for case, findings in left.items() if finding in findings}
        found[finding] = mine
        left = {case: findings for case, findings in left.items() if case not in mine}
    while left:
        finding = max(sorted({f for fs in left.values() for f in fs}), key=lambda f: _explains(f, left))
        found[finding] = {case for case, findings in left.items() if finding in findings}
        left = {case: findings for case, findings in left.items() if case not in found[finding]}
    known = {each.finding: each for each in listed}
    result = []
    for finding, cases in found.items():
        old = known.pop(finding, Deviation(finding, "", "", finding, ()))
        rest = [case for case in old.cases if case not in tried]
        result.append(Deviation(old.name, old.why, old.source, finding, tuple(sorted({*rest, *cases})), old.flaky))
    return tuple(result)


def _explains(finding: str, explained: Mapping[str, Sequence[str]]) -> int:
    return sum(finding in findings for findings in explained.values())


def _ranked(findings: Sequence[str], explained: Mapping[str, Sequence[str]]) -> list[str]:
    return sorted(dict.fromkeys(findings), key=lambda finding: -_explains(finding, explained))
