"""A page as it is to be shown: under which addresses, with which neighbours."""

from dataclasses import dataclass

from streamgauge.model.terms import Term
from streamgauge.servers.fragments.quads import Quad
from streamgauge.servers.fragments.serving.asked import Asked
from streamgauge.servers.fragments.serving.dataset import DataSet, Page
from streamgauge.servers.fragments.serving.metadata import Layout, Syntax, template
from streamgauge.servers.fragments.serving.skolem import named


@dataclass(frozen=True, slots=True)
class View:
    """A page of a data set, as asked for below ``base``; ``then`` is the instant that it shows (ms), if not now."""

    dataset: DataSet
    base: str
    asked: Asked
    page: Page
    then: int | None = None

    @property
    def size(self) -> int:
        """How many quads it may have."""
        return self.asked.limit or self.dataset.page_size

    @property
    def previous(self) -> int | None:
        """The number of the page before, one that is not empty; ``None`` when there is none."""
        last = -(-self.page.total // self.size)
        before = min(self.asked.number - 1, last)
        return before if before >= 1 else None

    @property
    def next(self) -> int | None:
        """The number of the page after; ``None`` when nothing would be on it."""
        return self.asked.number + 1 if self.asked.number * self.size < self.page.total else None

    @property
    def layout(self) -> Layout:
        """What its metadata's form depends on."""
        return Layout(
            self.base,
            self.dataset.name,
            self.dataset.shape,
            self.size,
            self.dataset.largest,
            self.asked.page == self.asked.fragment,
            self.previous is not None,
            self.next is not None,
        )

    @property
    def graph(self) -> Term:
        """The graph of its metadata."""
        return f"<{self.base}{self.asked.fragment}#metadata>"

    def metadata(self, syntax: Syntax) -> str:
        """Its metadata, in a syntax."""
        layout, fragment = self.layout, self.base + self.asked.fragment
        return template(layout, syntax) % {
            "G": f"{fragment}#metadata",
            "F": fragment,
            "P": self.base + self.asked.page,
            "A": self.address(1),
            "B": self.address(self.previous) if layout.previous else "",
            "C": self.address(self.next) if layout.next else "",
            "N": self.page.total,
        }

    def address(self, number: int | None) -> str:
        """The address of another page; nothing where there is none."""
        return "" if number is None else self.base + self.asked.at(number)

    def quads(self) -> list[Quad]:
        """Its data, without blank nodes."""
        base = self.base
        return [
            (named(s, base), named(p, base), named(o, base), named(g, base))
            if s[0] == "_" or o[0] == "_" or g[:1] == "_" or o[:2] == "<<"
            else (s, p, o, g)
            for s, p, o, g in self.page.quads
        ]
