"""Which models a diagnosis tries, and which it names: a search over made-up faults, whose distances are given.

A fault is a letter: f to l of the whole run, F to L fine ones, s and t slips, w a sway. A word is a model. What is in
no word of the table has no effect.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from streamgauge.model.verdict import Part
from streamgauge.oracle.diagnosis import diagnose as diagnosing
from streamgauge.oracle.diagnosis.diagnose import PatienceError, _explained, explained, worked
from streamgauge.oracle.diagnosis.explanation import ExplanationFit
from streamgauge.oracle.diagnosis.models import Fault, Slip, Sway
from tests.notation import rows
from tests.oracle.diagnosis.faults.recordings import elements, recording

Far = int | Mapping[int, int]


def part(letter: str) -> Part:
    return Part(letter, f"{letter}.")


class World:
    """In the place of a search: ``far`` is how many reports differ under a word, for all t0 or for each."""

    def __init__(self, far: Mapping[str, Far], letters: str, bits: Mapping[str, float] | None = None, **more: Any):
        self.far, self.bits, self.origins = far, bits or {}, more.get("origins", (0,))
        families = more.get("families", {})
        self._letters: dict[object, str] = {}
        self.faults = [self._fault(x, families, False) for x in letters if x.islower() and x not in "stw"]
        self.fine = [self._fault(x, families, True) for x in letters if x.isupper()]
        self.slips = [self._named(Slip(lambda _: (), lambda _, x=x: part(x)), x) for x in letters if x in "st"]
        self.sways = [self._named(Sway(lambda *_: None, lambda *_, x=x: part(x)), x) for x in letters if x == "w"]
        self.strange = more.get("strange", "")
        self.tried: list[str] = []
        self.evaluated, self.recorded, self.variables, self.base = 0, None, (), None
        self.simulator = SimpleNamespace(reports=lambda _case: ())
        self.length = self

    def _named(self, item: Any, letter: str) -> Any:
        self._letters[item] = letter
        return item

    def _fault(self, letter: str, families: Mapping[str, str], fine: bool) -> Fault:
        return self._named(
            Fault(part(letter), lambda case: case, fine=fine, family=families.get(letter, letter)), letter
        )

    def word(self, items: Sequence[object]) -> str:
        return "".join(sorted(self._letters[item] for item in items))

    def cases(self, faults: Sequence[Fault], origins: Sequence[int] | None = None):
        for t0 in self.origins if origins is None else origins:
            yield SimpleNamespace(word=self.word(faults), t0=t0)

    def _effective(self, word: str) -> str:
        known = set("".join(self.far))
        return "".join(x for x in word if x in known)

    def _far(self, word: str, t0: int) -> int:
        far = self.far.get(self._effective(word), self.far[""])
        return far if isinstance(far, int) else far[t0]

    def reports(self, case: Any) -> tuple[str, int]:
        return self._effective(case.word), case.t0

    def key(self, _case: Any, reports: object) -> object:
        return reports

    def distance(self, case: Any, _reports: object) -> int:
        return self._far(case.word, case.t0)

    def comes_out(self, case: Any) -> bool:
        self.tried.append(f"{case.word}{case.t0 or ''}")
        self.evaluated += 1
        return self._far(case.word, case.t0) == 0

    def similar(self, case: Any, _reports: object) -> bool:
        return case.word not in self.strange.split()

    def fit(self, case: Any, _reports: object, slips: Sequence[Slip]) -> ExplanationFit | None:
        word = "".join(sorted(case.word + self.word(slips)))
        self.tried.append(f"{word}{case.t0 or ''}")
        fits = self.far.get(word) == 0
        return ExplanationFit((), {slip: [] for slip in slips}, 0, ((7, 7, None),)) if fits else None

    def swayed(self, case: Any, sway: Sway, slips: Sequence[Slip] = ()) -> tuple[ExplanationFit, int] | None:
        word = "".join(sorted(case.word + self.word((sway, *slips))))
        self.tried.append(f"{word}{case.t0 or ''}")
        fits = self.far.get(word) == 0
        return (ExplanationFit((), {slip: [] for slip in slips}, 1, ((7, 7, None),)), 7) if fits else None

    def of(self, model: Sequence[object], _fit: object) -> float:
        return sum(self.bits.get(self._letters[item], 10) for item in model)

    def of_parts(self, parts: Sequence[object]) -> list[float]:
        return [self.of((item,), None) for item in parts]

    def shortest(self, parts: Sequence[object]) -> float:
        return min(self.of_parts(parts), default=0.0)

    def longest(self, parts: Sequence[object]) -> float:
        return max(self.of_parts(parts), default=0.0)


@pytest.fixture
def search(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """The diagnosis of a world with 5 answers."""
    monkeypatch.setattr(diagnosing, "merged_answers", lambda *_: [None] * 5)

    def run(world: World, progress: Callable[[int, int], None] = lambda _done, _of: None) -> Any:
        return _explained(world, progress)  # type: ignore[arg-type]

    return run


def words(explanation: Any) -> list[str]:
    return ["+".join(part.name for part in model) for model in explanation.diagnosis.models]


@pytest.mark.parametrize(
    ("world", "models", "numbers"),
    [
        # distance, reports that differ as declared, reports, t0, bits
        (World({"": {0: 2, 5: 0}}, "fg", origins=(0, 5)), [], (0, 0, 5, 5, ())),
        (World({"": {0: 3, 5: 2}, "f": {0: 1, 5: 0}}, "fg", origins=(0, 5)), ["f"], (0, 2, 5, 5, (10.0,))),
        (World({"": {0: 2, 5: 3}, "f": 0}, "fg", origins=(0, 5)), ["f"], (0, 2, 5, 0, (10.0,))),
        (World({"": 9, "f": 0, "g": 0}, "fgh", {"f": 12.34, "g": 8}), ["g", "f"], (0, 9, 9, 0, (8, 12.3))),
        (World({"": 3, "s": 0}, "fs", {"s": 9}), ["s"], (0, 3, 5, 0, (9.0,))),
        (World({"": 3, "w": 0}, "fsw", {"w": 9}), ["w"], (0, 3, 5, 0, (9.0,))),
        # The closest is named only where it is closer; the first of the equally near ones.
        (World({"": 3, "f": 3, "g": 4}, "fg"), [], (3, 3, 5, 0, ())),
        (
            World({"": {0: 4, 5: 3}, "f": 3, "g": {0: 2, 5: 1}, "h": 1}, "fgh", origins=(0, 5)),
            *(["g"], (1, 3, 5, 5, (10.0,))),
        ),
        (World({"": 3, "f": 1}, "f", origins=(0, 5)), ["f"], (1, 3, 5, 0, (10.0,))),  # at the first of equal t0s
        (World({"": 3, "f": 2, "g": 2, "fg": 1}, "fg"), ["f+g"], (1, 3, 5, 0, (20.0,))),
        (World({"": 3, "f": 2, "g": 2, "fg": 2}, "fg"), ["f"], (2, 3, 5, 0, (10.0,))),
        (World({"": 3, "f": 2, "g": 2, "fg": 1}, "fg", families={"f": "x", "g": "x"}), ["f"], (2, 3, 5, 0, (10.0,))),
        # Only the four nearest are paired: i and j are the fifth and the sixth.
        (
            World({"": 9, "f": 5, "g": 5, "h": 5, "i": 6, "j": 6, "ij": 1, "hi": 2}, "jfghi"),
            ["f"],
            (5, 9, 9, 0, (10.0,)),
        ),
        (World({"": 9, "f": 5, "g": 5, "h": 5, "i": 6, "j": 7, "hi": 2}, "jfghi"), ["h+i"], (2, 9, 9, 0, (20.0,))),
    ],
)  # fmt: skip
def test_the_models_that_are_named(search, world, models, numbers):
    explanation = search(world)
    diagnosis = explanation.diagnosis
    assert words(explanation) == models
    assert (diagnosis.distance, diagnosis.differs, diagnosis.reports, diagnosis.t0, diagnosis.bits) == numbers
    assert [result.case.t0 for result in explanation.found] == [numbers[3]] * len(models)


@pytest.mark.parametrize(
    ("world", "models", "tried"),
    [
        # A fine fault may still be as short as what was found: less than 2 bits longer than the shortest.
        (World({"": 3, "f": 0, "F": 0}, "fF", {"f": 10, "F": 11.9}), ["f", "F"], "F"),
        (World({"": 3, "f": 0, "F": 0}, "fF", {"f": 10, "F": 12}), ["f"], "f"),
        (World({"": 3, "F": 0}, "fF", {"F": 99}), ["F"], "F"),
        # Two causes are looked for where one takes more than 3 times the longest description of one of the whole run.
        (World({"": 3, "f": 1, "g": 1, "s": 0, "fg": 0}, "fgs", {"s": 31}), ["f+g", "s"], "fg"),
        (World({"": 3, "f": 1, "g": 1, "s": 0, "fg": 0}, "fgs", {"s": 30}), ["s"], "s"),
        (World({"": 3, "f": 1, "g": 1, "fg": 0}, "fg"), ["f+g"], "fg"),
        (World({"": 3, "f": 1, "g": 1, "fg": 0}, "fg", families={"f": "x", "g": "x"}), ["f"], None),
        (World({"": 3, "f": 1, "fs": 0}, "fs"), ["f+s"], "fs"),
        (World({"": 3, "f": 1, "fs": 0}, "fs", strange="f"), ["f"], None),
        (World({"": 3, "st": 0}, "fst"), ["s+t"], "st"),
        (World({"": 3, "sw": 0}, "fsw"), ["w+s"], "sw"),
        (World({"": 3, "f": 1, "fw": 0}, "fw"), ["f+w"], "fw"),
        # A fault without any effect alone, with one that has some: only where nothing else fits.
        (World({"": 3, "f": 1, "fi": 0, "i": 3}, "fi"), ["f+i"], "fi"),
        # Fine ones with slips, with faults that act, and with each other.
        (World({"": 3, "f": 1, "F": 2, "Ff": 0}, "fFG"), ["F+f"], "Ff"),
        (World({"": 3, "F": 2, "G": 2, "FG": 0}, "fFG"), ["G+F"], "FG"),
        (World({"": 3, "F": 2, "Fs": 0}, "fFs"), ["F+s"], "Fs"),
        (World({"": 3, "F": 2, "G": 2, "FG": 0}, "fFG", families={"F": "x", "G": "x"}), [], None),
        # Not where some model was found, however long its description.
        (World({"": 3, "F": 2, "G": 2, "FG": 0, "s": 0}, "fFGs", {"s": 99}), ["s"], None),
    ],
)
def test_what_is_tried(search, world, models, tried):
    assert words(search(world)) == models
    assert tried is None or tried in world.tried


def test_an_idle_fault_is_tried_with_those_that_act_only_where_nothing_fits(search):
    world = World({"": 3, "f": 1, "g": 1, "fg": 0, "i": 3}, "fgi")
    world._effective = lambda word: "".join(x for x in word if x in "fg" or len(word) > 1)  # type: ignore[method-assign]
    search(world)
    assert "fi" not in world.tried
    other = World({"": 3, "f": 1, "fi": 0}, "fgi")
    other._effective = lambda word: "" if word in ("g", "i") else word  # type: ignore[method-assign]
    assert words(search(other)) == ["f+i"]
    assert "gi" not in other.tried
    kin = World({"": 3, "f": 1, "fi": 0}, "fi", families={"f": "x", "i": "x"})
    kin._effective = lambda word: "" if word == "i" else word  # type: ignore[method-assign]
    assert words(search(kin)) == ["f"]


def test_fine_faults_are_tried_with_the_first_values_of_all_families_first_and_no_more_than_are_allowed(
    search, monkeypatch
):
    families = {"F": "x", "G": "x", "H": "x", "I": "y"}
    world = World({"": 3, "F": 1, "G": 1, "H": 1, "I": 1}, "FGHI", families=families)
    search(world)
    pairs = [word for word in world.tried if len(word) == 2]
    assert pairs == ["FI", "GI", "HI"]  # F, I, G, H: each with those before it of other families
    monkeypatch.setattr(diagnosing, "PER_FAMILY", 2)
    fewer = World(world.far, "FGHI", families=families)
    search(fewer)
    assert [word for word in fewer.tried if len(word) == 2] == ["FI", "GI"]
    monkeypatch.setattr(diagnosing, "FINE_EVALUATIONS", 0)
    least = World(world.far, "FGHI", families=families)
    search(least)
    assert [word for word in least.tried if len(word) == 2] == ["FI"]


def test_fine_pairs_are_tried_at_the_candidates_nearest_to_the_recording(search):
    far = {0: 9, 1: 4, 2: 8, 3: 5, 4: 6}
    world = World({"": far, "F": 3, "I": 3}, "FI", origins=tuple(far))
    search(world)
    assert [word for word in world.tried if word.startswith("FI")] == ["FI1", "FI3", "FI4"]


def test_a_search_that_is_ended_has_what_fitted_so_far(search):
    world = World({"": 3, "f": 0, "g": 1, "h": 0}, "fgh")
    steps = []

    def impatient(done: int, of: int) -> None:
        steps.append((done, of))
        if done == 2:
            raise PatienceError("enough")

    explanation = search(world, impatient)
    assert (words(explanation), explanation.ended) == (["f"], "enough")
    # 3 faults alone; with slips, 3 pairs of them; the closest of 3.
    assert steps == [(1, 3 + 3 + 3 + 3), (2, 3 + 3 + 3 + 3)]


def test_all_steps_are_told_where_nothing_fits(search):
    steps: list[tuple[int, int]] = []
    search(World({"": 3, "f": 3, "g": 3, "F": 3}, "fghF"), lambda *step: steps.append(step))
    assert [done for done, _ in steps] == sorted(done for done, _ in steps)
    assert all(done < of for done, of in steps)
    done, of = steps[-1]
    assert done == of - 1


@pytest.mark.parametrize(
    ("answers", "instant", "expected", "recorded", "model"),
    [
        # A report is shown beside all answers that the model explains by it.
        ("s 5 | s 15 | s 35 | s 25 | s 45", 30, "s 25", "s 35 ; s 25", "s 25"),
        ("s 5 | s 15 | s 25 ; s 35 | s 45", 30, "s 25", "s 25 ; s 35", "s 25"),
        ("s 5 | s 15 | s 35 | s 45", 30, "s 25", None, "s 25"),
        ("s 5 | s 15 | s 15 | s 25 | s 35 | s 45", None, None, "s 15", None),
    ],
)
def test_the_first_report_that_differs_is_worked_out(answers, instant, expected, recorded, model):
    text = " | ".join(f"{time}: s p {time}." for time in (5, 15, 25, 35, 45))
    run = recording(text, "SELECT ?s ?v { ?s <urn:p> ?v }", advance=50)
    said = tuple(replace(run.answers[0], added=rows(part)) for part in answers.split("|"))
    window = worked(explained(replace(run, answers=said), elements(text)))
    assert window is not None
    told = (window.expected, window.recorded, window.model)
    assert told == tuple(None if item is None else rows(item) for item in (expected, recorded, model))
    scope = None if instant is None else (instant - 10, instant)
    assert (window.instant, window.scope, window.model_scope) == (instant, scope, scope if model else None)
