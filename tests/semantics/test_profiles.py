"""The profiles are what docs/semantics.md says of them, and each of their choices has a source."""

from dataclasses import MISSING, fields, replace
from pathlib import Path

import pytest

from streamgauge.model.semantics import (
    R2S,
    Borders,
    Changes,
    Clock,
    Counting,
    Due,
    EmptyAggregate,
    Grain,
    Origin,
    Report,
    Scope,
    Semantics,
    StaticData,
    Tick,
)
from streamgauge.semantics.profiles import (
    PROFILES,
    UnknownProfileError,
    classification,
    makes_choices_of,
    profile,
)

DOCS = Path(__file__).parents[2] / "docs/semantics.md"
HEAD = ("report", "tick", "borders", "partial head", "t0", "R2S", "empty answers", "grain", "unit")
STRATEGIES = {
    "close": Report.WINDOW_CLOSE,
    "non-empty": Report.NON_EMPTY,
    "content change": Report.CONTENT_CHANGE,
    "expiration": Report.EXPIRATION,
}
MORE = {
    "put time": {"clock": Clock.PUT},
    "arrival time": {"clock": Clock.ARRIVAL},
    "pure RANGE": {"scope": Scope.RANGE},
    "the last of several": {"due": Due.LAST},
    "arrivals only": {"changes": Changes.ARRIVALS},
    "updates": {"content": Counting.UPDATES},
    "no row over nothing": {"empty_aggregate": EmptyAggregate.NO_ROW},
    "an empty string over nothing": {"empty_aggregate": EmptyAggregate.EMPTY_STRING},
    "beside static data": {"static_data": StaticData.BESIDE},
    "else each 1 s": {"period": 1000},
}
BORDERS = {
    "[o, c)": Borders.CLOSED_OPEN,
    "(o, c]": Borders.OPEN_CLOSED,
    "[o, c]": Borders.CLOSED,
    "[initial, final)": Borders.CLOSED_OPEN,
    "(initial, final]": Borders.OPEN_CLOSED,
    "landmark, [o, c]": Borders.CLOSED,
}
LETTERS = {"R": R2S.RSTREAM, "I": R2S.ISTREAM, "D": R2S.DSTREAM, "I and D": R2S.CHANGES}
UNITS = {"1 s": 1000, "100 ms": 100, "1 ms": 1, "1 publication": 1}


def rows() -> dict[str, dict[str, str]]:
    """The table of the profiles in the docs, by name."""
    lines = DOCS.read_text("utf-8").partition("\n## Profiles\n")[2].splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    assert cells[0] == ["name", *HEAD]
    return {name: dict(zip(HEAD, others, strict=True)) for name, *others in cells[2:]}


def described(said: dict[str, str]) -> dict[str, object]:
    """A row of the table as fields."""
    results: dict[str, object] = {}
    strategies = set()
    for part in said["report"].replace(" and ", ", ").split(", "):
        if part in STRATEGIES:
            strategies.add(STRATEGIES[part])
        else:
            results |= MORE[part]
    default, _, able = said["R2S"].partition(" (")
    letters = default.removesuffix(" over sets") if default != "as the query says" else "R"
    results |= {
        "report": frozenset(strategies),
        "tick": Tick(said["tick"].partition(" (")[0]),
        "borders": BORDERS[said["borders"]],
        "partial_head": said["partial head"] != "no",
        "r2s": LETTERS[letters],
        "answers": Counting.SET if default.endswith("over sets") else Counting.BAG,
        "notify_empty": {"yes": True, "no": False}[said["empty answers"]],
        "grain": Grain(said["grain"]),
        "time_unit": UNITS[said["unit"]],
    }
    match said["t0"]:
        case "search":
            results["origin"] = Origin.SEARCH
        case "first" | "first, floored":
            results["origin"] = Origin.FIRST
        case number:
            results |= {"origin": Origin.FIXED, "t0": int(number)}
    if default != "as the query says":
        results["able"] = frozenset({results["r2s"], *(LETTERS[part] for part in able.strip(")").split(", ") if part)})
    return results


def test_every_profile_is_in_the_docs():
    assert rows().keys() == PROFILES.keys()


@pytest.mark.parametrize("name", PROFILES)
def test_a_profile_is_what_the_docs_say(name):
    held = PROFILES[name]
    said = described(rows()[name])
    able = said.pop("able", frozenset({R2S.RSTREAM, R2S.ISTREAM, R2S.DSTREAM}))
    assert replace(Semantics(name), r2s_able=held.r2s_able, **said) == held  # type: ignore[arg-type]
    if "r2s_able" in held.sources or name == "rspql":
        assert held.r2s_able == able


@pytest.mark.parametrize("held", PROFILES.values(), ids=PROFILES)
def test_every_choice_has_a_source(held):
    known = {field.name: field for field in fields(Semantics)}
    assert held.sources.keys() <= known.keys()
    chosen = {
        name for name, item in known.items() if item.default is not MISSING and getattr(held, name) != item.default
    }
    assert chosen - {"t0"} <= held.sources.keys()
    assert {"report", "tick", "r2s", "notify_empty", "origin", "borders", "time_unit"} <= held.sources.keys()
    assert all(source and "None" not in source for source in held.sources.values())


def test_the_classification_is_table_1_of_csrbench():
    assert classification() == [
        (
            "Report strategy",
            "S2R",
            "Window close and Non-empty content",
            "Content-change (non-empty, by its oracle's settings)",
            "Window close and Non-empty content",
        ),
        ("Tick", "S2R", "Tuple-driven", "Tuple-driven (judged once per time of the source)", "Tuple-driven"),
        ("Output operator", "R2S", "Rstream", "Istream", "Rstream, Istream and Dstream"),
        ("Empty relation notification", "R2S", "Yes", "No", "No"),
        ("Time unit", "", "seconds", "hundreds milliseconds", "hundreds milliseconds"),
    ]


def test_a_name_that_no_profile_has_is_told_with_those_that_there_are():
    with pytest.raises(UnknownProfileError, match=r"no semantics named 'storm': there are csparql, csparql-0.9.7"):
        profile("storm")
    assert profile("sens").name == "sens"


def test_choices_are_a_profiles_whatever_the_name_and_the_lateness():
    own = replace(profile("csparql"), name="mine", lateness=50)
    assert makes_choices_of(own, ["rspql", "csparql"])
    assert not makes_choices_of(own, ["rspql", "cqels"])
    assert not makes_choices_of(replace(own, time_unit=1), ["csparql"])
