"""Addresses of fragments, by the form of their data set."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from streamgauge.model.algebra import Node, Var
from streamgauge.model.terms import Term, is_blank, is_literal
from streamgauge.servers.fragments.fetching.contract import Binding
from streamgauge.servers.fragments.fetching.controls import SIZE, VALUES, Form, text
from streamgauge.servers.fragments.fetching.matching import substituted
from streamgauge.servers.fragments.fetching.template import expand
from streamgauge.servers.fragments.quads import ANYWHERE, DEFAULT, QuadPattern

MOST: Final = 30
"""Solution mappings in a request where the form does not say (Hartig and Buil-Aranda, 2016: maxMpR)."""

_PLACES: Final = ("subject", "predicate", "object", "graph")


@dataclass(frozen=True, slots=True)
class Asking:
    """The forms of a data set: the plain one, the one that takes solution mappings if there is one.

    ``default`` is the IRI by which the default graph is asked for, ``longest`` bounds the characters of an address.
    """

    plain: Form
    binding: Form | None
    default: Term | None
    longest: int

    @property
    def graphs(self) -> bool:
        """Whether quads are asked for."""
        return "graph" in self.plain.names

    def has(self, pattern: QuadPattern) -> bool:
        """Whether any fragment can have matching quads: one of triples has none in named graphs."""
        return self.graphs or pattern.graph in (DEFAULT, ANYWHERE)

    def whole(self, pattern: QuadPattern) -> str:
        """The reference of the fragment of a pattern."""
        return expand(self.plain.template, self._values(self.plain, pattern))

    @property
    def largest(self) -> int | None:
        """How many quads a page may be asked to have, where that can be said."""
        return self.binding.largest if self.binding is not None and SIZE in self.binding.names else None

    def large(self, pattern: QuadPattern) -> str:
        """The reference of the fragment of a pattern on the largest pages that there are."""
        if self.binding is None or self.largest is None:
            return self.whole(pattern)
        return expand(self.binding.template, self._values(self.binding, pattern) | self._size(self.binding))

    def narrowed(self, pattern: QuadPattern, restrictions: Sequence[Binding]) -> list[str]:
        """The references of fragments that have what joins with one of the restrictions, each of which is not empty."""
        if self.binding is None:
            return [self.whole(substituted(pattern, each)) for each in restrictions]
        return list(self._batched(self.binding, pattern, restrictions))

    def _batched(self, form: Form, pattern: QuadPattern, restrictions: Sequence[Binding]) -> Iterator[str]:
        names = {variable: f"v{number}" for number, variable in enumerate(pattern.variables)}
        places = self._values(form, pattern, names) | self._size(form)
        begun = 0
        while begun < len(restrictions):
            taken = min(form.most or MOST, len(restrictions) - begun)
            address = self._bound(form, places, names, restrictions[begun : begun + taken])
            while len(address) > self.longest and taken > 1:
                taken = (taken + 1) // 2
                address = self._bound(form, places, names, restrictions[begun : begun + taken])
            yield address
            begun += taken

    def _size(self, form: Form) -> dict[str, str]:
        return {} if self.largest is None else {form.names[SIZE]: str(self.largest)}

    def _bound(self, form: Form, places: dict[str, str], names: dict[Var, str], restrictions: Sequence[Binding]) -> str:
        used = {variable: name for variable, name in names.items() if any(variable in each for each in restrictions)}
        rows = " ".join(f"({' '.join(each.get(variable, 'UNDEF') for variable in used)})" for each in restrictions)
        values = f"({' '.join(f'?{name}' for name in used.values())}) {{ {rows} }}"
        return expand(form.template, {**places, form.names[VALUES]: values})

    def _values(self, form: Form, pattern: QuadPattern, names: dict[Var, str] | None = None) -> dict[str, str]:
        """What stands in a form for a pattern; variables are left out unless they have names."""
        values = {}
        for place, node in zip(_PLACES, pattern.nodes, strict=True):
            written = self._written(form, node, names or {})
            if written is not None and place in form.names:
                values[form.names[place]] = written
        return values

    def _written(self, form: Form, node: Node, names: dict[Var, str]) -> str | None:
        if isinstance(node, Var):
            return f"?{names[node]}" if node in names else None
        if node == DEFAULT:
            return None if self.default is None else written(self.default, form)
        return None if is_blank(node) else written(node, form)


def asking(forms: Sequence[Form], default: Term | None, longest: int) -> Asking:
    """Of the forms of a page, the one with most places and, if there is one, the one with bindings too."""
    plain = max(
        (form for form in forms if not {VALUES, SIZE} & form.names.keys()),
        key=lambda form: len(form.names),
        default=forms[0],
    )
    binding = next((form for form in forms if VALUES in form.names), None)
    return Asking(plain, binding, default, longest)


def written(term: Term, form: Form) -> str:
    """A term as a form takes it (Hydra, 5.2): bare text, or with quotes, language and datatype, IRIs bare in both."""
    if not is_literal(term) or form.bare:
        return text(term) if not term.startswith("<<") else term
    rest = term[term.rfind('"') + 1 :]
    return f'"{text(term)}"{f"^^{rest[3:-1]}" if rest.startswith("^^") else rest}'
