"""The pytest plugin, in test runs of its own: fixtures, and conformance as tests of a program with a fault."""

import subprocess
import sys
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.slow

MINIMAL = (Path(__file__).resolve().parents[2] / "examples" / "engines" / "minimal.py").read_text()
FAULTY = MINIMAL.replace("while self.close <= item", "while self.close < item")
ALONE = ("-p", "no:randomly", "-p", "no:xdist", "-p", "no:cacheprovider", "-p", "no:schemathesis", "-p", "no:timeout")
INSTALLED = any(point.value == "streamgauge.testing.plugin" for point in entry_points(group="pytest11"))
LOADED = [import_module(f"streamgauge.testing.{name}") for name in ("assertions", "servers", "sessions", "tasks")]
"""A run within this one forgets the modules that it was the first to import, which would be loaded again and again."""
DEVIATION = """[[deviation]]
name = "it waits"
why = {why}
source = "a test"
findings = [{finding}]
cases = ["tumbling windows are half-open @ own"]
"""
SUITE = ("--pyargs", "streamgauge.testing.conformance")


class LoadedModules:
    """A plugin of a run within this one: imports are kept, as a library loaded twice does not know its own errors."""

    def __init__(self, folder):
        self._folder, self._modules = str(folder), {}

    def pytest_unconfigure(self):
        self._modules = dict(sys.modules)

    def keep(self):
        for name, module in self._modules.items():
            if not str(getattr(module, "__file__", None) or self._folder).startswith(self._folder):
                sys.modules.setdefault(name, module)


@pytest.fixture
def run(pytester):
    """Run pytest in this process with the plugin."""

    def call(*words):
        own = () if INSTALLED else ("-p", "streamgauge.testing.plugin")
        loaded = LoadedModules(pytester.path)
        done = pytester.runpytest_inprocess(*own, *ALONE, *map(str, words), plugins=[loaded])
        loaded.keep()
        return done

    return call


@pytest.fixture
def certified(run, pytester):
    """Run the conformance suite's borders on the text of a program."""

    def call(text, *words):
        program = pytester.path / "engine.py"
        program.write_text(text)
        only = ("--streamgauge-case", "tumbling windows", "--streamgauge-semantics", "own")
        return run(*SUITE, "--streamgauge-program", f"{sys.executable} {program}", *only, "-rxs", *words)

    return call


def test_fixtures_build_streams_and_sessions(run, pytester):
    pytester.makepyfile("""
        from streamgauge.testing import assert_right

        QUERY = '''SELECT ?s FROM NAMED WINDOW <urn:w> ON <urn:in> [RANGE PT5S STEP PT5S]
            WHERE { WINDOW <urn:w> { ?s ?p ?o } }'''

        def test_right(streamgauge_stream, streamgauge_session):
            stream = streamgauge_stream("urn:in", {"": "urn:"}).at("1s", ":a :p 1 .").at("6s", ":b :p 1 .")
            assert_right(streamgauge_session(QUERY).feed(stream).advance("10s"))
            assert_right(QUERY, stream, [(5000, [("<urn:a>",)])])

        def test_wrong(streamgauge_stream):
            stream = streamgauge_stream("urn:in", {"": "urn:"}).at("1s", ":a :p 1 .").at("5s", ":b :p 1 .")
            assert_right(QUERY, stream, [(5000, [("<urn:a>",), ("<urn:b>",)]), (10_000, [])])
    """)
    done = run()
    done.assert_outcomes(passed=1, failed=1)
    done.stdout.fnmatch_lines(
        ["*window 0 [[]0, 5) s, report at 5 s: wrong*", "*surplus: ?s = <urn:b>", "*missing: ?s = <urn:b>"]
    )


@pytest.mark.server
def test_fixtures_start_and_stop_servers(run, pytester):
    pytester.makepyfile("""
        import threading
        import httpx
        import pytest

        ADDRESSES = []

        def test_broker(streamgauge_broker):
            client = streamgauge_broker.client
            client.create_channel("prices", "SELECT ?thing { ?thing <urn:costs> ?price }")
            client.publish("<urn:a> <urn:costs> 3 .")
            assert "urn:a" in str(client.rows("prices"))
            ADDRESSES.append(streamgauge_broker.url)

        def test_fragments(streamgauge_fragments):
            url = streamgauge_fragments({"trains": "<urn:a> <urn:late> 3 ."})
            assert "urn:late" in httpx.get(f"{url}/trains", headers={"Accept": "application/trig"}).text
            ADDRESSES.append(url)

        def test_both_have_stopped():
            assert len(ADDRESSES) == 2
            for address in ADDRESSES:
                with pytest.raises(httpx.ConnectError):
                    httpx.get(address)
            for each in threading.enumerate():
                if each.name.startswith("streamgauge-"):
                    each.join(60)  # who looks after deadlines goes on for half a second
                    assert not each.is_alive()
    """)
    run("-W", "error").assert_outcomes(passed=3)


@pytest.mark.server
def test_a_right_program_passes_or_is_skipped_with_its_sentence(certified):
    done = certified(MINIMAL)
    parsed = done.parseoutcomes()
    assert set(parsed) - {"warnings", "warning"} == {"passed", "skipped"}
    assert parsed["passed"] > 1
    done.stdout.fnmatch_lines(["*refused: this engine reads SELECT with one triple pattern *"])


@pytest.mark.server
def test_a_broken_program_fails_by_case_window_and_rows(certified):
    done = certified(FAULTY, "-k", "half-open")
    assert FAULTY != MINIMAL
    assert done.parseoutcomes()["failed"] == 1
    done.stdout.fnmatch_lines(
        [
            "*test_conformance[[]tumbling windows are half-open @ own[]]*",
            "*tumbling windows are half-open @ own: failing",
            "*the case: tumbling windows are half-open: an element on the border*(CSRBench, section 3)",
            "*window 1 [[]0.005, 0.01) s, report at 0.01 s: missed, expected 2 rows, received 0",
            "*missing: ?s = <urn:b>",
            "*Diagnosis: *",
        ]
    )


@pytest.mark.server
def test_a_listed_deviation_is_an_expected_failure_and_stale_once_mended(certified, pytester):
    listed = pytester.path / "deviations.toml"
    words = ("-k", "half-open or list", "--streamgauge-deviations", listed)
    listed.write_text(DEVIATION.format(why='"For something later."', finding='"reports lost at the tail"'))
    done = certified(FAULTY, *words)
    done.assert_outcomes(xfailed=1, passed=1)
    done.stdout.fnmatch_lines(["*it waits: For something later."])
    done = certified(MINIMAL, *words)
    done.assert_outcomes(failed=1, passed=1)
    done.stdout.fnmatch_lines(["*half-open @ own: stale", "*listed under 'it waits', but it is passed*"])


@pytest.mark.server
@pytest.mark.prove
def test_a_list_has_reasons_and_tasks_of_the_suite_and_the_oracle_s_findings(certified, pytester):
    listed = pytester.path / "deviations.toml"
    words = ("-k", "half-open or list", "--streamgauge-deviations", listed)
    listed.write_text(
        DEVIATION.format(why='""', finding='"borders = (o, c]"').replace("half-open @ own", "half-closed")
    )
    done = certified(FAULTY, *words)
    done.assert_outcomes(failed=2)
    done.stdout.fnmatch_lines(
        ["*deviation 'it waits' has no reason*", "*half-closed: listed, but the suite has no such task"]
    )
    listed.write_text(DEVIATION.format(why='"For nothing."', finding='"borders = (o, c]"'))
    done = certified(FAULTY, *words)
    done.assert_outcomes(failed=1, passed=1)
    done.stdout.fnmatch_lines(["*deviating in another way", "*but the oracle finds: *reports lost at the tail*"])


@pytest.mark.server
def test_a_program_that_is_set_up_wrongly_is_started_once(certified, pytester):
    done = certified(f"open({str(pytester.path / 'starts')!r}, 'a').write('.')\nimport a_module_that_is_not_there\n")
    parsed = done.parseoutcomes()
    assert parsed["failed"] > 1
    assert len((pytester.path / "starts").read_text()) == 1
    done.stdout.fnmatch_lines(["*not set up rightly, so nothing is certified: *"])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--streamgauge-engine", "nosuch"], "unknown engine 'nosuch'"),
        (["--streamgauge-engine", "live", "--streamgauge-program", "x"], "name one of both"),
        (["--streamgauge-program", "no-such-program"], "'no-such-program' cannot be started"),
        (["--streamgauge-engine", "live", "--streamgauge-case", "no such"], "no case has 'no such' in its name"),
        (["--streamgauge-engine", "live", "--streamgauge-semantics", "x"], "--streamgauge-semantics: "),
        (["--streamgauge-engine", "live", "--streamgauge-deviations", __file__], "test_plugin.py: "),
        (
            ["--streamgauge-engine", "live", "--streamgauge-deviations", "x"],
            "--streamgauge-deviations x: there is no",
        ),
    ],
)
def test_what_is_asked_wrongly_is_said(run, words, sentence):
    done = run(*SUITE, *words)
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    assert done.stdout.str() == ""
    (line,) = filter(None, done.stderr.str().splitlines())
    assert line.startswith("ERROR: ")
    assert sentence in line


def test_without_an_engine_nothing_is_certified(run):
    run(*SUITE).assert_outcomes(skipped=2)


@pytest.mark.server
def test_the_plugin_imports_nothing_that_is_not_used():
    code = "import sys; import pytest; before = set(sys.modules); import streamgauge.testing.plugin; "
    code += "print(*sorted(name for name in set(sys.modules) - before))"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert set(output) == {
        "streamgauge",
        "streamgauge.testing",
        "streamgauge.testing.plugin",
    }
