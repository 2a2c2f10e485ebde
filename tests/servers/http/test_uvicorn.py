"""uvicorn's classes, which the servers override, are the ones that they were written for."""

import inspect
import re
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.servers.http.uvicorn_classes import OVERRIDING, base, digests, functions, overridden

ROOT = Path(__file__).resolve().parents[3]
KNOWN = tomllib.loads((Path(__file__).parent / "uvicorn.toml").read_text())
CHECK = """uvicorn {version} has another {base} than {ours} was written for.
Changed: {changed}. Overridden by {ours}: {overridden}.
Read the changes; see that what is overridden is still called at the same moments and that the attributes which {ours}
reads are still set; run tests/servers and tests/fuzz; then write the new digests:
python -m tests.servers.http.uvicorn_classes > tests/servers/http/uvicorn.toml"""


def complaint(overriding, result):
    """What to check again, empty where uvicorn's class is the known one."""
    known = KNOWN[base(overriding).__name__]
    changed = sorted(name for name in known.keys() | result.keys() if known.get(name) != result.get(name))
    if not changed:
        return ""
    return CHECK.format(
        version=version("uvicorn"),
        base=base(overriding).__name__,
        ours=overriding.__name__,
        changed=", ".join(changed),
        overridden=", ".join(overridden(overriding)),
    )


@pytest.mark.parametrize("overriding", OVERRIDING, ids=lambda ours: ours.__name__)
def test_what_is_overridden_is_what_it_was(overriding):
    assert not complaint(overriding, digests(overriding)), complaint(overriding, digests(overriding))


@pytest.mark.parametrize("overriding", OVERRIDING, ids=lambda ours: ours.__name__)
def test_a_changed_function_is_named_with_what_to_check(overriding):
    name = overridden(overriding)[0]
    said = complaint(overriding, digests(overriding) | {name: "another"})
    assert f"Changed: {name}. Overridden by {overriding.__name__}: " in said
    assert f"another {base(overriding).__name__} than" in said
    assert "Changed: gone, new. " in complaint(overriding, digests(overriding) | {"new": "", "gone": ""})


@pytest.mark.parametrize("overriding", OVERRIDING, ids=lambda ours: ours.__name__)
def test_parameters_are_those_of_the_overridden(overriding):
    for name in set(overridden(overriding)) - {"__init__"}:
        ours = inspect.signature(vars(overriding)[name]).parameters
        assert list(ours) == functions(overriding)[name][1], name


def test_only_versions_with_these_classes_are_installed():
    """The upper bound is the next minor version, in which uvicorn changes what it likes."""
    lines = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    (result,) = (re.fullmatch(r"uvicorn>=0\.(\d+),<0\.(\d+)", line) for line in lines if line.startswith("uvicorn"))
    minor = int(version("uvicorn").split(".")[1])
    assert int(result[1]) <= minor == int(result[2]) - 1
