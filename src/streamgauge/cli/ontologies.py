"""Ontologies that commands take, and what is said of them: axioms left out, ontologies imported."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

if TYPE_CHECKING:
    from streamgauge.reasoning import Rules
    from streamgauge.reasoning.ontology import Extent

Lenient = Annotated[
    bool, typer.Option("--ontology-lenient", help="List and leave out axioms outside OWL 2 RL, instead of refusing.")
]
SameAs = Annotated[bool, typer.Option("--same-as", help="Derive owl:sameAs (keys, functional properties) and use it.")]
Subsumption = Annotated[
    bool,
    typer.Option("--subsumption", help="A part of `p some C` is one of `p some D` if C is of D (scm-svf1, -svf2)."),
]
IMPORTED: Final = "imports {}, which is not fetched: give its file as an ontology too"


def read_ontologies(
    files: Iterable[Path],
    extent: Extent,
    say: Callable[[str], object],
    *,
    lenient: bool = False,
    same_as: bool = False,
    subsumption: bool = False,
) -> Rules:
    """The rules of ontologies together; OntologyError names an axiom outside them, FormatError a file."""
    from streamgauge.formats.streams import read_triples
    from streamgauge.reasoning import read_rules
    from streamgauge.reasoning.expressions import EQUALITY

    axioms = [triple for file in files for triple in read_triples(file)]
    rules = read_rules(axioms, extent, same_as=same_as, subsumption=subsumption, lenient=lenient)
    for name in rules.imports:
        say(f"the ontology {IMPORTED.format(name)}")
    for each in rules.left_out:
        if each.reason != EQUALITY:
            say(f"left out of the ontology: {each}")
    equal = sum(each.reason == EQUALITY for each in rules.left_out)
    if equal:
        say(f"left out of the ontology, unless --same-as is given: axioms that derive owl:sameAs ({equal})")
    return rules
