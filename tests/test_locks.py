"""The locks have the versions of constraints.txt, digests of their files, and all that a package of them needs."""

import re
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.installation.lock import BUILD, EXTRAS

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PINNED = {
    canonicalize_name(name): version
    for name, version in re.findall(r"(?m)^([\w.-]+)==(\S+)$", (ROOT / "constraints.txt").read_text())
}


def locked(name):
    """The packages of a lock with their versions; each line has a digest for every file."""
    lines = (ROOT / "locks" / f"{name}.txt").read_text().replace("\\\n", " ").splitlines()
    matches = [re.fullmatch(r"([\w.-]+)==(\S+)( ; [^#]+?)?((?: +--hash=sha256:[0-9a-f]{64})+)", line) for line in lines]
    assert None not in matches
    return {canonicalize_name(match[1]): match[2] for match in matches}


def needed(waiting):
    """The packages of requirements (PEP 508) and those that these need here; one that is not here needs nothing."""
    results = set()
    while waiting:
        requirement = Requirement(waiting.pop())
        name = canonicalize_name(requirement.name)
        if (name, *requirement.extras) in results:
            continue
        results.add((name, *requirement.extras))
        if name == "streamgauge":
            waiting += [line for extra in requirement.extras for line in PROJECT["optional-dependencies"][extra]]
        else:
            waiting += own(name, requirement.extras)
    return {name for name, *_ in results} - {"streamgauge"}


def own(name, extras):
    """The requirements of a package that is installed here, with extras."""
    try:
        lines = [Requirement(line) for line in distribution(name).requires or ()]
    except PackageNotFoundError:
        return []
    asked = [{"extra": extra} for extra in ("", *extras)]
    wanted = [line for line in lines if line.marker is None or any(map(line.marker.evaluate, asked))]
    return [str(line).partition(";")[0] for line in wanted]


@pytest.mark.parametrize("name", EXTRAS)
def test_versions_are_those_of_the_constraints(name):
    assert locked(name) == {package: PINNED.get(package) for package in locked(name)}


@pytest.mark.parametrize("name", EXTRAS)
def test_all_that_is_needed_is_locked(name):
    extras = [f"streamgauge[{extra}]" for extra in EXTRAS[name]]
    build = [BUILD] if EXTRAS[name] else []
    packages = needed([*(line.partition(";")[0] for line in PROJECT["dependencies"]), *extras, *build])
    assert packages <= locked(name).keys()
    assert {"pyarrow", "pydantic-core", "uvicorn", "h11"} <= packages
    assert ("pyspark" in packages) == (name == "all")
