"""From changes of solutions to changes of what a query form answers: solutions, one boolean, or triples."""

import re
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Final, Protocol

from streamgauge.incremental.bags import Bag, add
from streamgauge.incremental.matching import FALSE, TRUE
from streamgauge.model import algebra as al
from streamgauge.model.terms import Row, Term, Triple, is_blank, is_iri, is_literal

TRIPLE_COLUMNS = ("subject", "predicate", "object")
_BLANK: Final = re.compile(r"_:\d+")


class Shape(Protocol):
    """Turns changes into changes; it remembers what it needs of those before."""

    def change(self, delta: Bag) -> Bag:
        """The change of the answer."""
        ...

    def forget(self) -> None:
        """Begin again: the next change is one from nothing."""
        ...


class Boolean:
    """ASK: one row, true or false, from the first change on."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin again from nothing."""
        self._solutions = 0
        self._shown: Row | None = None

    def change(self, delta: Bag) -> Bag:
        """The row that comes and the one that goes."""
        self._solutions += sum(delta.values())
        row: Row = (TRUE if self._solutions else FALSE,)
        if row == self._shown:
            return {}
        change: Bag = {row: 1}
        if self._shown is not None:
            change[self._shown] = -1
        self._shown = row
        return change


class Triples:
    """CONSTRUCT: the set of well-formed triples of the template's instances.

    A blank node of the template is a fresh one for each solution, the same as long as the solution is there: its
    label is made of the solution and of which of its equal copies it is.
    """

    def __init__(self, template: Sequence[al.TriplePattern], names: Sequence[str]) -> None:
        self._template = [(triple.subject, triple.predicate, triple.object) for triple in template]
        self._at = {name: position for position, name in enumerate(names)}
        nodes = {node for nodes in self._template for node in nodes if isinstance(node, al.Var)}
        self._blank = sorted(node.name for node in nodes if is_fresh(node))
        self.forget()

    def forget(self) -> None:
        """Begin again from nothing."""
        self._found: Bag = {}
        self._copies: Bag = {}

    def change(self, delta: Bag) -> Bag:
        """Triples whose number of instances rose from, or fell to, nothing."""
        moved: Bag = {}
        for row, count in delta.items():
            before = self._found.get(row, 0)
            for copy in self._instances(before, before + count):
                for triple in self._triples(row, copy):
                    add(moved, triple, 1 if count > 0 else -1)
            add(self._found, row, count)
        change: Bag = {}
        for cells, count in moved.items():
            had = self._copies.get(cells, 0)
            add(self._copies, cells, count)
            if bool(had) != bool(had + count):
                change[cells] = 1 if count > 0 else -1
        return change

    def _instances(self, before: int, after: int) -> range:
        """The numbers of the copies that come or go; without blank nodes all copies are one."""
        if self._blank:
            return range(min(before, after), max(before, after))
        return range(1) if bool(before) != bool(after) else range(0)

    def _triples(self, row: Row, copy: int) -> Iterator[Triple]:
        fresh = {name: _label(row, copy, name) for name in self._blank}
        for nodes in self._template:
            cells = [self._cell(node, row, fresh) for node in nodes]
            if _is_triple(cells):
                yield str(cells[0]), str(cells[1]), str(cells[2])

    def _cell(self, node: object, row: Row, fresh: dict[str, Term]) -> Term | None:
        if not isinstance(node, al.Var):
            return str(node)
        return fresh[node.name] if node.name in fresh else row[self._at[node.name]]


def is_fresh(node: al.Var) -> bool:
    """Whether a variable of a template stands for a blank node."""
    return _BLANK.fullmatch(node.name) is not None


def _label(row: Row, copy: int, name: str) -> Term:
    digest = blake2b(repr((row, copy, name)).encode(), digest_size=12).hexdigest()
    return f"_:c{digest}"


def _is_triple(cells: Sequence[Term | None]) -> bool:
    subject, predicate, end = cells
    if subject is None or predicate is None or end is None:
        return False
    return (
        (is_iri(subject) or is_blank(subject))
        and is_iri(predicate)
        and (is_iri(end) or is_blank(end) or is_literal(end))
    )


def shape(form: al.QueryForm, names: Sequence[str]) -> Shape | None:
    """What shapes solutions over ``names``; ``None`` for SELECT, whose answer they are."""
    if isinstance(form, al.Ask):
        return Boolean()
    return Triples(form.template, names) if isinstance(form, al.Construct) else None


def columns(form: al.QueryForm) -> tuple[str, ...]:
    """The columns of a form's answer: its variables, those of a triple, or ``ask``."""
    if isinstance(form, al.Select):
        return form.variables
    return TRIPLE_COLUMNS if isinstance(form, al.Construct) else ("ask",)


def wanted(form: al.QueryForm) -> tuple[str, ...]:
    """The variables of the solutions that the answer is made of."""
    match form:
        case al.Select(variables=variables):
            return variables
        case al.Construct(template=template):
            found = dict.fromkeys(var for triple in template for var in al.triple_variables(triple))
            return tuple(var.name for var in found if not is_fresh(var))
        case _:
            return ()
