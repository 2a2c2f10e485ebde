"""Proofs that are interrupted go on where they were."""

import pytest

pytest_plugins = ["pytester"]

TESTS = """
import pytest

def test_first():
    pass

@pytest.mark.parametrize("kills", [5, 50])
def test_second(kills, request):
    if request.config.getoption("--fail"):
        pytest.fail("not yet")
"""
OPTION = """
def pytest_addoption(parser):
    parser.addoption("--fail", action="store_true")
"""


@pytest.fixture
def prove(pytester):
    pytester.makepyfile(test_some=TESTS)
    pytester.makeconftest(OPTION)

    def run(*more: str) -> tuple[dict[str, int], int]:
        result = pytester.runpytest_inprocess(
            "-p", "tests.proving", "-p", "no:randomly", "--proven", "out/proven", *more
        )
        return result.parseoutcomes(), result.ret

    return run


@pytest.mark.slow
def test_what_has_passed_is_not_run_again(prove, pytester):
    assert prove("--fail") == ({"passed": 1, "failed": 2}, pytest.ExitCode.TESTS_FAILED)
    assert prove("-k", "50") == ({"passed": 1, "deselected": 2}, pytest.ExitCode.OK)
    assert prove() == ({"passed": 1, "deselected": 2}, pytest.ExitCode.OK)
    assert prove() == ({"deselected": 3}, pytest.ExitCode.OK)
    assert len((pytester.path / "out" / "proven").read_text().splitlines()) == 3


def test_without_a_record_all_is_run(prove):
    assert prove("--fail", "-k", "second")[0]["failed"] == 2
    assert prove()[0] == {"passed": 3}
