"""The wheel, built in isolation as pip does it and installed, does outside of the checkout what the checkout does.

The libraries are those of the environment that runs the tests. `make installation` runs them, which installs libraries
too.
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.installation.environments import has_index

pytestmark = [pytest.mark.server, pytest.mark.prove]

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "streamgauge"
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")
SHOP = "<urn:a> <urn:costs> 3 .\n"
PRICES = "SELECT ?thing ?price { ?thing <urn:costs> ?price }"


@dataclass(frozen=True)
class Installed:
    """The wheel, the program of the environment that it is installed in, and an empty folder to work in."""

    wheel: Path
    program: Path
    folder: Path

    def start(self, *words: object) -> "subprocess.Popen[str]":
        """A command as a program of its own, in the folder."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        return subprocess.Popen(
            [self.program, *map(str, words)],
            cwd=self.folder,
            env={**environment, "PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def call(self, *words: object) -> str:
        """The output of a command that ends well."""
        process = self.start(*words)
        said, complained = process.communicate(timeout=300)
        assert process.returncode == 0, complained
        return said

    @contextmanager
    def serving(self, *words: object) -> Iterator[str]:
        """The address of a server, from when it is ready until Ctrl-C."""
        with socket.socket() as result:
            result.bind(("127.0.0.1", 0))
            port = result.getsockname()[1]
        process, address = self.start(*words, "--port", port), f"http://127.0.0.1:{port}"
        try:
            for _ in range(6000):
                with suppress(OSError), urlopen(f"{address}/health", timeout=60) as answer:
                    assert answer.status == 200
                    break
                assert process.poll() is None, process.communicate()
                time.sleep(0.05)
            yield address
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=300)
        assert process.returncode in (0, 130)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    root = tmp_path_factory.mktemp("wheel")
    if not has_index():
        pytest.skip("pip reaches no index of packages here: the wheel is built where it does")
    build = ("wheel", "--no-deps", "--wheel-dir", root, ROOT)
    subprocess.run([*PIP, *build], check=True, cwd=root)
    (wheel,) = root.glob("*.whl")
    home = root / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True)
    python = home / "bin" / "python"
    own = ("--python", python, "install", "--no-deps", "--no-index", "--no-compile", wheel)
    subprocess.run([*PIP, *own], check=True, cwd=root)
    (packages,) = home.glob("lib/python*/site-packages")
    (packages / "libraries.pth").write_text(f"{sysconfig.get_path('purelib')}\n{sysconfig.get_path('platlib')}\n")
    (root / "folder").mkdir()
    return Installed(wheel, home / "bin" / "streamgauge", root / "folder")


def test_every_file_of_the_package_is_in_the_wheel(installed):
    wanted = {
        str(file.relative_to(PACKAGE.parent))
        for file in PACKAGE.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    with zipfile.ZipFile(installed.wheel) as wheel:
        results = {name for name in wheel.namelist() if ".dist-info/" not in name}
    pages = {name for name in results if name.startswith("streamgauge/site/")}
    assert results - pages == wanted
    assert {f"streamgauge/site/{name}" for name in ("index.html", "searchindex.js", "semantics.html")} <= pages


def test_the_program_is_of_the_wheel(installed):
    python = installed.program.with_name("python")
    output = subprocess.run(
        [python, "-P", "-c", "import streamgauge; print(streamgauge.__file__)"],
        cwd=installed.folder,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
    ).stdout
    assert Path(output.strip()).is_relative_to(installed.program.parents[1])


def test_own_stream_to_verdict_and_page(installed):
    installed.call("init", "mine")
    installed.call("run", "mine/experiment.toml", "--out", "runs")
    verdicts = [json.loads(file.read_text())["verdict"] for file in installed.folder.glob("runs/*/verdict.json")]
    assert [verdict["judgement"] for verdict in verdicts] == ["right", "right"]
    assert "<html" in (installed.folder / "runs" / "report.html").read_text()
    assert installed.call("query", "mine/query.rq", "--stream", "mine/stream.ttl", "--time-property", "sosa:resultTime")


def test_the_documentation_is_in_the_wheel(installed):
    folder = Path(installed.call("docs", "--path").strip())
    assert folder.is_relative_to(installed.program.parents[1])
    with installed.serving("docs") as address:
        for page in ("", "semantics.html", "search.html?q=landmark", "searchindex.js"):
            with urlopen(f"{address}/{page}") as answer:
                assert b"Streamgauge" in answer.read() or page == "searchindex.js"


def test_what_the_package_lists_is_there(installed):
    said = json.loads(installed.call("engines", "--json"))
    assert set(said["engines"]) == {file.name.partition(".")[0] for file in engines()}
    assert "weather" in installed.call("workloads")


def engines() -> list[Path]:
    return [
        file
        for file in (PACKAGE / "engines").iterdir()
        if not file.name.startswith("_") and (file.suffix == ".py" or (file / "__init__.py").exists())
    ]


def test_publish_and_subscribe(installed):
    for name, text in {"shop.ttl": SHOP, "more.ttl": "<urn:b> <urn:costs> 4 .\n", "prices.rq": PRICES}.items():
        (installed.folder / name).write_text(text)
    with installed.serving("broker", "serve", "shop.ttl", "--journal", "broker.db") as address:
        listening = installed.start("subscribe", "prices", "--query", "prices.rq", "--limit", 1, "--at", address)
        for _ in range(6000):
            with suppress(OSError), urlopen(f"{address}/channels/prices") as result:
                if json.load(result)["connections"]:
                    break
            time.sleep(0.05)
        else:
            pytest.fail(f"nobody subscribed: {listening.poll()}")
        installed.call("publish", "more.ttl", "--at", address)
        said, complained = listening.communicate(timeout=300)
    assert "urn:b" in said, complained


def test_a_live_query_over_linked_data(installed):
    (installed.folder / "shop.ttl").write_text(SHOP)
    (installed.folder / "prices.rq").write_text(PRICES)
    with installed.serving("fragments", "serve", "shop.ttl") as address:
        said = installed.call("watch", "prices.rq", f"{address}/shop", "--once")
        with urlopen(f"{address}/shop") as page:
            assert b"urn:a" in page.read()
    assert "urn:a" in said


def test_continuous_queries_over_http(installed):
    with installed.serving("engine", "serve", "live") as address, urlopen(address) as page:
        assert b"<html" in page.read()


SUITE = ("-m", "pytest", "-p", "no:randomly", "-p", "no:cacheprovider", "--pyargs", "streamgauge.testing.conformance")
ENGINES = ROOT / "examples" / "engines"


def conformance(installed: Installed, program: str, *words: str) -> "subprocess.CompletedProcess[str]":
    """The conformance suite as tests of a program, by the plugin that the wheel's entry point names."""
    python = installed.program.with_name("python")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    asked = [python, *SUITE, "--streamgauge-program", program, *words]
    return subprocess.run(asked, cwd=installed.folder, env=environment, capture_output=True, text=True)


@pytest.mark.prove
@pytest.mark.parametrize(("program", "file"), [("python3", "minimal.py"), ("node", "minimal.js")])
def test_the_plugin_certifies_the_example_engines(installed, program, file):
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed: the reference engine {file} cannot run")
    done = conformance(installed, f"{program} {ENGINES / file}")
    assert done.returncode == 0, done.stdout
    passed = re.search(r"(\d+) passed, (\d+) skipped", done.stdout.splitlines()[-1])
    assert passed is not None, done.stdout
    assert int(passed[1]) > 100


@pytest.mark.prove
def test_a_broken_copy_of_an_example_engine_fails_by_case_window_and_rows(installed):
    right = (ENGINES / "minimal.py").read_text()
    broken = installed.folder / "broken.py"
    broken.write_text(right.replace("while self.close <= item", "while self.close < item"))
    assert broken.read_text() != right
    done = conformance(installed, f"python3 {broken}", "--streamgauge-case", "borders")
    assert done.returncode == 1
    for words in (
        "tumbling windows are half-open @ own: failing",
        "window 1 [0.005, 0.01) s, report at 0.01 s: missed, expected 2 rows, received 0",
        "missing: ?s = <urn:b>",
        "Diagnosis: ",
    ):
        assert words in done.stdout, done.stdout


@pytest.mark.prove
def test_the_demo_on_spark(installed):
    installed.call("demo", "--out", "demo-out")
    assert "<html" in (installed.folder / "demo-out" / "report.html").read_text()
