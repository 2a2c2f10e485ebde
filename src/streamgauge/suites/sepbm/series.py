"""Many runs in a folder, each in a process of its own and done once: what is kept is not done again."""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path

from streamgauge.formats.making import keep_first, made_folder, making
from streamgauge.suites.sepbm import recorded
from streamgauge.suites.sepbm.configuration import read
from streamgauge.suites.sepbm.contract import UnusableSystemError
from streamgauge.suites.sepbm.running import Plan, run

Tell = Callable[[str, float], None]
"""Told what is done next, and the share that is done."""


@dataclass(frozen=True)
class Wanted:
    """A run: its folder's name, the configuration's folder, the system with its options, and how it is published to."""

    name: str
    configuration: Path
    system: str
    options: Mapping[str, str] = field(default_factory=dict)
    plan: Plan = field(default_factory=Plan)


def done(wanted: Iterable[Wanted], folder: Path, tell: Tell) -> dict[str, str]:
    """Do what is not kept yet; by its name why a run could not be done at all."""
    todo = list(wanted)
    lacking: dict[str, str] = {}
    for place, each in enumerate(todo):
        if kept(each, folder):
            continue
        tell(f"{each.name} ({place + 1} of {len(todo)} runs)", place / len(todo))
        try:
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
                pool.submit(_do, each, folder / each.name).result()
        except (UnusableSystemError, BrokenProcessPool) as error:
            lacking[each.name] = str(error)
    return lacking


def kept(wanted: Wanted, folder: Path) -> bool:
    """Whether a run was done before."""
    return (folder / wanted.name / recorded.ABOUT).exists()


def _do(wanted: Wanted, folder: Path) -> None:
    configuration = read(wanted.configuration)
    made_folder(folder.parent)
    with making(folder) as place:
        recorded.write(place, run(configuration, wanted.system, wanted.options, wanted.plan), configuration)
        keep_first(place, folder)
