"""The tool by itself: what is changed, what is drawn, how a change is put into live code, and what is counted."""

import ast
from collections import Counter
from pathlib import Path

import pytest

import streamgauge
from tests.mutants import equivalent
from tests.mutants.mutant import Mutant, difference
from tests.mutants.reached import Reached, functions_of, kept, spans
from tests.mutants.replaced import NotInFunctionsError, functions, replace, runs_at_import
from tests.mutants.sample import draw, files, shares
from tests.mutants.table import Ended, share, table
from tests.mutants.trial import Died, Tried, forked

SOURCE = '''
"""A module for people."""

from typing import Final

Name = str | None
LIMIT: Final = 3


def made() -> int:
    return 1


MADE = made()


class Box:
    size = 2

    def fits(self, other: int = 0) -> bool:
        """Whether it fits."""
        assert other >= 0, "not at all"
        if other > self.size:
            raise ValueError(f"too large: {other + 1}")
        pairs = zip("ab", "cd", strict=True)
        return all(one < two for one, two in pairs)
'''


def changes(source: str) -> dict[int, set[str]]:
    (file,) = files({"box.py": source})
    made = [(line, file.mutant(item)) for line, several in file.lines.items() for item in several]
    results: dict[int, set[str]] = {}
    for line, mutant in made:
        if mutant is not None:
            results.setdefault(line, set()).add(mutant.after)
    return results


def test_what_decides_nothing_is_left_alone():
    result = changes(SOURCE)
    assert result[7] == {"LIMIT: Final = 4", "LIMIT: Final = None"}
    assert result[18] == {"size = 3", "size = None"}
    assert not result.keys() & {2, 4, 6, 9, 21, 22, 24}
    assert result[20] == {"def fits(self, other: int = 1) -> bool:"}
    assert "if other >= self.size:" in result[23]
    assert not any("strict=False" in text or "strict" not in text for text in result[25] if "zip" in text)
    assert "return all(one <= two for one, two in pairs)" in result[26]


def test_texts_for_people_and_default_functions_are_left_alone_where_they_stand():
    source = 'WHY: Final = "no such place"\nKEY = "a"\nsay: Say = lambda _: None\nError("too large", at)\n'
    result = changes(source)
    assert result.keys() == {2, 4}
    assert result[4] == {'Error("too large", None)', 'Error("too large", )'}


def test_every_mutant_is_python_and_differs():
    for several in changes(SOURCE).values():
        assert "" not in several
    (file,) = files({"box.py": SOURCE})
    for several in file.lines.values():
        for item in several:
            mutant = file.mutant(item)
            if mutant is not None:
                ast.parse(mutant.source)
                assert mutant.source != SOURCE


def test_a_match_is_changed_too():
    source = 'def f(x):\n    match x:\n        case "a":\n            return 1\n        case _:\n            return 2\n'
    result = changes(source)
    assert result.keys() == {3, 4, 6}
    assert result[4] == {"return 2", ""}
    assert any("XXaXX" in item for item in result[3])


def test_the_sample_is_the_same_for_a_seed_and_spread_over_files():
    mutable = files(dict.fromkeys(("a.py", "b.py", "c.py"), SOURCE))
    drawn = draw(mutable, 9, 1)
    assert Counter(item.file for item in drawn) == {"a.py": 3, "b.py": 3, "c.py": 3}
    assert len({(item.file, item.line) for item in drawn}) == 9
    assert draw(mutable, 9, 1) == drawn
    assert draw(mutable, 9, 2) != drawn
    assert draw(mutable[:1], 3, 1) == [item for item in drawn if item.file == "a.py"]


@pytest.mark.parametrize(
    ("lines", "count", "result"),
    [
        ({"a": 10, "b": 30}, 8, {"a": 2, "b": 6}),
        ({"a": 1, "b": 99}, 10, {"a": 1, "b": 9}),
        ({"a": 5, "b": 5, "c": 5}, 7, {"a": 3, "b": 2, "c": 2}),
        ({"a": 2, "b": 2}, 9, {"a": 2, "b": 2}),
    ],
)
def test_a_file_gets_its_share(lines, count, result):
    assert shares(lines, count) == result


LIVE = "def outer(x):\n    def inner(y):\n        return y + 1\n    return inner(x) * 2\n\nTEN = outer(4)\n"


def test_changed_code_is_put_into_the_functions_that_live(tmp_path):
    file = str(tmp_path / "live.py")
    names: dict = {}
    exec(compile(LIVE, file, "exec"), names)
    known, live = names["outer"], functions(str(tmp_path))
    assert known(1) == 4
    assert replace(LIVE, LIVE.replace("y + 1", "y - 1"), file, live) == 1
    assert known(1) == 0
    with pytest.raises(NotInFunctionsError):
        replace(LIVE, LIVE.replace("outer(4)", "outer(5)"), file, live)
    assert runs_at_import(LIVE) == {"outer"}
    assert runs_at_import(SOURCE) == {"made"}


def test_a_statement_has_its_own_lines_and_its_functions():
    source = "A = 1\n\ndef f(x):\n    if x:\n        return g(\n            x,\n        )\n    return 2\n"
    assert spans(source, 6) == (range(5, 8), range(4, 9), "f")
    assert spans(source, 4) == (range(4, 5), range(4, 9), "f")
    assert spans(source, 1) == (range(1, 2), range(1, 2), None)


def test_what_was_measured_is_kept_until_a_tests_file_changes(tmp_path):
    first = Reached(
        {"t/a.py::x": 0.5, "t/b.py::y": 0.1},
        {"m.py": {4: ["t/a.py::x", "t/b.py::y"]}},
        [],
        {"t/a.py": "1", "t/b.py": "2"},
    )
    first.keep(tmp_path / "kept.json")
    again = kept(tmp_path / "kept.json")
    assert again == first
    assert again.of("m.py", [4, 5]) == ["t/b.py::y", "t/a.py::x"]
    assert again.within(again.of("m.py", [4]), 0.3) == ["t/b.py::y"]
    fresh = again.fresh({"t/a.py": "1", "t/b.py": "3"})
    assert (fresh.seconds, fresh.lines) == ({"t/a.py::x": 0.5}, {"m.py": {4: ["t/a.py::x"]}})
    fresh.add(Reached({"t/b.py::y": 0.2}, {"m.py": {9: ["t/b.py::y"]}}))
    assert fresh.lines == {"m.py": {4: ["t/a.py::x"], 9: ["t/b.py::y"]}}
    assert kept(tmp_path / "none.json") == Reached()


def test_a_function_that_has_only_moved_keeps_its_tests_and_a_changed_one_is_measured_again():
    before = "A = 1\n\n\ndef f(x):\n    return x\n\n\nclass B:\n    def g(self):\n        return 2\n"
    after = before.replace("A = 1\n", "A = 1\nC = 3\n").replace("return 2", "return 3")
    assert {name: span[:2] for name, span in functions_of(before).items()} == {"f": (4, 5), "B.g": (9, 10)}
    first = Reached({"x": 0.5, "y": 0.1}, {"m.py": {5: ["x"], 10: ["y"]}}, functions={"m.py": functions_of(before)})
    result = first.moved({"m.py": after})
    assert (result.seconds, result.lines) == ({"x": 0.5}, {"m.py": {6: ["x"]}})
    assert result.functions == {"m.py": functions_of(after)}
    assert first.moved({}).seconds == {}


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")  # of Python 3.12, beside threads
def test_a_copy_of_the_process_gives_its_result_or_how_it_died():
    import os

    assert forked(lambda say: [1, "a"]) == [1, "a"]
    assert forked(lambda say: os.kill(os.getpid(), 9)) == Died(9)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        forked(lambda say: 1 // 0)


def ended(how: str, file: str = "a.py") -> Ended:
    return Ended(Mutant(file, 1, "f", "x = 1", "x = 2", "x = 2\n"), Tried(how), "x = 1\n")


def test_an_endless_loop_is_caught_and_equivalent_mutants_count_apart():
    several = [ended("caught"), ended("timed out"), ended("survived", "b.py"), ended("equivalent", "b.py")]
    assert share(several) == pytest.approx(200 / 3)
    assert share(several[3:]) == 100.0
    assert table(several).splitlines()[-1].split() == ["all", "files", "4", "1", "1", "1", "1", "66.7", "%"]
    assert difference("x = 1\n", "x = 2\n", "a.py").splitlines()[-2:] == ["-x = 1", "+x = 2"]


def test_the_code_of_every_equivalent_mutant_is_there():
    for file, _, before, _ in equivalent.proofs():
        lines = (Path(streamgauge.__file__).parents[1] / file).read_text("utf-8").splitlines()
        assert before in " ".join(map(str.strip, lines)), f"{file} has no {before!r}: remove its entry"


def test_every_equivalent_mutant_has_a_proof_and_can_be_written(tmp_path):
    assert all(equivalent.proofs().values())
    mutant = Mutant("a.py", 1, "f", "x = 'a'", 'y = "b"', "")
    entry = equivalent.entry(mutant)
    file = tmp_path / "equivalent.toml"
    file.write_text(entry.replace('proof = ""', 'proof = "why"'), "utf-8")
    assert equivalent.proofs(file) == {mutant.key: "why"}
    file.write_text(entry, "utf-8")
    with pytest.raises(ValueError, match="has no proof"):
        equivalent.proofs(file)
