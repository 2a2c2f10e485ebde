"""The table of extras is pyproject.toml's; one that is missing is named with its command, at every way in."""

import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from streamgauge.model.extras import EXTRAS, MissingExtraError, missing, missing_for, require
from streamgauge.model.mistake import MistakeError

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
DECLARED = PROJECT["optional-dependencies"]
OF_EXTRAS = sorted({module.partition(".")[0] for extra in EXTRAS.values() for module in extra.modules} - {"google"})


def names(requirements):
    return {re.split(r"[\s;<>=!~(\[]", line)[0].lower() for line in requirements}


def test_every_extra_is_in_the_table_and_all_is_all_but_the_site():
    assert set(EXTRAS) == set(DECLARED) - {"all", "dev"}
    (everything,) = DECLARED["all"]
    assert everything == f"streamgauge[{','.join(sorted(set(EXTRAS) - {'docs'}))}]"
    (development,) = (line for line in DECLARED["dev"] if line.startswith("streamgauge["))
    assert development == f"streamgauge[{','.join(sorted(set(EXTRAS) - {'names'}))}]"


@pytest.mark.parametrize("extra", sorted(set(EXTRAS) - {"names"}))
def test_the_modules_of_an_extra_come_with_its_packages(extra):
    assert missing(extra) == ""
    require(extra)
    distributions = packages_distributions()
    brought = names(DECLARED[extra]) | ({"py4j"} if extra == "spark" else set())
    for module in EXTRAS[extra].modules:
        assert brought & {name.lower() for name in distributions[module.partition(".")[0]]}, module
    assert not brought & names(PROJECT["dependencies"])


@pytest.mark.parametrize("extra", sorted(EXTRAS))
def test_a_missing_one_is_a_sentence_with_its_command(extra, monkeypatch):
    use, package, modules = EXTRAS[extra]
    monkeypatch.setitem(sys.modules, modules[0], None)
    with pytest.raises(MistakeError) as refusal:
        require(extra)
    assert isinstance(refusal.value, MissingExtraError)
    assert str(refusal.value) == missing(extra) == f"{use} needs {package}: pip install 'streamgauge[{extra}]'"
    assert missing_for(ModuleNotFoundError(name=f"{modules[0]}.part")) == missing(extra)


def test_an_import_of_anything_else_is_no_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark", None)
    assert missing_for(ModuleNotFoundError(name="numpy")) == ""
    assert missing_for(ImportError("cannot import name")) == ""
    assert missing_for(ModuleNotFoundError(name="py4j.protocol")).startswith("Spark needs PySpark: ")


_CORE = f"""
import sys
from importlib import import_module
from pkgutil import walk_packages
sys.modules.update(dict.fromkeys({OF_EXTRAS}))
import streamgauge
from streamgauge.cli.catalogue import COMMANDS
from streamgauge.cli.main import load
for name in COMMANDS:
    load(name)
for name in streamgauge.__all__:
    getattr(streamgauge, name)
from streamgauge import engines, workloads
for name in engines.names():
    engines.load(name)
for name in workloads.names():
    workloads.load(name)
query = "SELECT ?s FROM STREAM <urn:s> [RANGE 2s STEP 2s] WHERE {{ ?s <urn:p> ?o }}"
stream = [(1000, "<urn:a> <urn:p> <urn:b> .")]
assert len(streamgauge.expect(query, stream, advance_to=4000)) > 0
try:
    streamgauge.expect(query, stream, advance_to=4000, evaluator="spark")
except streamgauge.MistakeError as error:
    print(error)
from streamgauge.cli.main import main
sys.argv = "streamgauge stream average.rq --from readings.nq --to answers/ --checkpoint state/".split()
main()  # imports PySpark deep inside, after it has found its files
"""


@pytest.mark.server
def test_without_extras_all_loads_and_judges_and_spark_is_refused():
    done = subprocess.run([sys.executable, "-c", _CORE], cwd=ROOT / "examples", capture_output=True, text=True)
    sentence = "Spark needs PySpark: pip install 'streamgauge[spark]'\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, sentence, f"streamgauge: {sentence}")
