"""The structure of the code and the words of its documentation in figures; `python -m tests.structure` prints them.

The code is read from syntax trees (`ast`) of the packages below `src/` and of `benchmarks/`; nothing is imported.
`tests/structure.toml` holds the reasons for what stays on purpose and the figures that may not get worse.
"""

import ast
import re
import signal
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from statistics import median, quantiles

from tests.wording import PRIVATE, bindings, pages, report_pages, words

ROOT = Path(__file__).parent.parent
SHORT_DOCSTRING = 4
"""Words below which a docstring hardly says more than the name."""

PAIR = 500
"""Lines that a module and its only importer may have together before they are better left apart."""

BLOCKS = ("body", "handlers", "orelse", "finalbody", "cases")
"""Fields of a statement, of an ``except`` and of a ``case`` that hold statements."""

OPENINGS = re.compile(r"(What|Who|Whoever|Whose|That which|Those that|Of the|Of what)\b")
"""Openings that leave a sentence without a noun for its subject; questions may begin so, and titles of a few words."""

_SENTENCE_END = re.compile(r"(?<=[.;:?])\s+|\n\s*\n|^\s*(?:[-*]|\d+\.)\s+|\|", re.MULTILINE)
_FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)

Function = ast.FunctionDef | ast.AsyncFunctionDef
Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Module:
    """A file with its dotted name; a package's ``__init__`` has the package's name."""

    name: str
    path: Path

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, self.path)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """The module and its statements, inner ones too, which are all that is looked at; no expressions."""
        results: list[ast.AST] = [self.tree]
        for node in results:
            for name in BLOCKS:
                results += getattr(node, name, ())
        return results

    @property
    def lines(self) -> int:
        return self.text.count("\n")

    @property
    def is_package(self) -> bool:
        return self.path.stem == "__init__"

    @property
    def is_program(self) -> bool:
        """Whether the module runs by its name, under ``if __name__ == "__main__"``."""
        return any(isinstance(node, ast.If) and "__name__" in ast.dump(node.test) for node in self.tree.body)

    @cached_property
    def code(self) -> int:
        """Lines that are neither empty, nor a comment, nor part of a docstring."""
        docs = {line for node in self.nodes for line in _docstring_lines(node)}
        rows = enumerate(self.text.splitlines(), 1)
        return sum(bool(row.strip()) and not row.strip().startswith("#") and at not in docs for at, row in rows)

    @cached_property
    def comments(self) -> int:
        """Lines that are a comment, or end with one after two blanks, as formatted code has it."""
        docs = {line for node in self.nodes for line in _docstring_lines(node)}
        rows = enumerate(self.text.splitlines(), 1)
        return sum(at not in docs and bool(re.search(r"(?:^\s*|\s\s)# ", row)) for at, row in rows)

    @cached_property
    def layer(self) -> str:
        """The top package that the module is in: ``servers`` of ``streamgauge.servers.http.sse``."""
        parts = self.name.split(".")
        inner = parts[0] == "streamgauge" and (len(parts) > 2 or (len(parts) == 2 and self.is_package))
        return parts[1] if inner else parts[0]

    def strings(self) -> Iterator[str]:
        """Strings that stand by themselves: docstrings, and those below the name that they are about."""
        for node in self.nodes:
            if (
                isinstance(node, ast.Expr)
                and isinstance(node.value, ast.Constant)
                and isinstance(node.value.value, str)
            ):
                yield node.value.value

    def functions(self) -> Iterator[Function]:
        """All functions, methods and nested ones."""
        return (node for node in self.nodes if isinstance(node, Function))

    def classes(self) -> Iterator[ast.ClassDef]:
        """Classes at the top of the file that are not private."""
        return (node for node in self.tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_"))

    def public(self) -> Iterator[Documented]:
        """The module, its public classes and functions, and the public methods of these classes."""
        yield self.tree
        for node in self.tree.body:
            if isinstance(node, ast.ClassDef | Function) and not node.name.startswith("_"):
                yield node
                if isinstance(node, ast.ClassDef):
                    yield from (one for one in node.body if isinstance(one, Function) and not one.name.startswith("_"))

    def imports(self, names: Mapping[str, "Module"], *, top: bool = False) -> set[str]:
        """The modules of ``names`` that this one imports, in functions too unless ``top``; relative imports count."""
        results: set[str] = set()
        for node in self.tree.body if top else self.nodes:
            if isinstance(node, ast.Import):
                results |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                base = self._base(node)
                inner = {f"{base}.{alias.name}" for alias in node.names}
                results |= {one if one in names else base for one in inner}
        return {one for one in results if one in names and one != self.name}

    def _base(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        parts = self.name.split(".")
        kept = parts[: len(parts) - node.level + self.is_package]
        return ".".join([*kept, *filter(None, [node.module])])


def without_subject(text: str) -> Iterator[str]:
    """The sentences of a text, Markdown or a docstring, that begin with one of ``OPENINGS``."""
    for part in _SENTENCE_END.split(_FENCE.sub("", text)):
        words = part.strip().strip("*_").split()
        if OPENINGS.match(" ".join(words)) and len(words) > 3 and not words[-1].endswith("?"):
            yield " ".join(words)[:100]


def _docstring_lines(node: ast.AST) -> range:
    if isinstance(node, Documented) and ast.get_docstring(node, clean=False) is not None:
        first = node.body[0]
        return range(first.lineno, (first.end_lineno or first.lineno) + 1)
    return range(0)


def length(function: Function) -> int:
    """Lines of a function from ``def`` to its end, its docstring included."""
    return (function.end_lineno or function.lineno) - function.lineno + 1


def modules(root: Path = ROOT) -> dict[str, Module]:
    """The modules below ``root/src`` and ``root/benchmarks`` by their dotted names."""
    results = {}
    for home, base in ((root / "src", root / "src"), (root / "benchmarks", root)):
        for path in sorted(home.rglob("*.py")):
            parts = path.relative_to(base).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            results[name] = Module(name, path)
    return results


class Structure:
    """The figures of a set of modules, and the reasons of ``structure.toml`` for what stays."""

    def __init__(self, result: Mapping[str, Module], kept: Mapping[str, Mapping[str, str]]) -> None:
        self.modules = result
        self._kept = kept
        self.importers: dict[str, set[str]] = defaultdict(set)
        for module in result.values():
            for name in module.imports(result):
                self.importers[name].add(module.name)

    def cycle(self) -> list[str]:
        """Modules that import each other when they are loaded, the first one again at the end; empty where none do."""
        graph = {name: module.imports(self.modules, top=True) for name, module in self.modules.items()}
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            return list(error.args[1])
        return []

    def large(self, limit: int = 500) -> dict[str, int]:
        """Files of more lines than ``limit``."""
        return {module.name: module.lines for module in self.modules.values() if module.lines > limit}

    def one_importer(self) -> dict[str, tuple[str, str]]:
        """Modules that exactly one other imports: that one, and the reason to stay (empty when there is none)."""
        alone = {
            name: next(iter(self.importers[name]))
            for name, module in self.modules.items()
            if len(self.importers[name]) == 1 and not module.is_package and module.path.stem != "__main__"
        }
        return {name: (by, self._reason(self.modules[name], self.modules[by])) for name, by in alone.items()}

    @property
    def unexplained(self) -> dict[str, int]:
        """Counts of modules with one importer, class names and names in -ing that have no reason."""
        return {
            "one_importer": sum(not why for _, why in self.one_importer().values()),
            "class_names": sum(not why for _, why in self.twice().values()),
            "verbs": sum(not why for why in self.verbs().values()),
        }

    def _reason(self, module: Module, by: Module) -> str:
        folder = module.name.rpartition(".")[0]
        if folder in self._kept.get("extension_points", {}):
            return f"extension point: {self._kept['extension_points'][folder]}"
        if module.is_program:
            return f"a program: python -m {module.name}"
        if module.layer != by.layer:
            return f"border of layers: {by.layer} imports {module.layer}"
        if module.lines + by.lines > PAIR:
            return f"the pair has {module.lines + by.lines} lines"
        return self._kept.get("one_importer", {}).get(module.name, "")

    def twice(self) -> dict[str, tuple[list[str], str]]:
        """Names that several public classes have: their modules, and the reason (empty when there is none)."""
        homes: dict[str, list[str]] = defaultdict(list)
        for module in self.modules.values():
            for node in module.classes():
                homes[node.name].append(module.name)
        reasons = self._kept.get("class_names", {})
        return {name: (where, reasons.get(name, "")) for name, where in sorted(homes.items()) if len(where) > 1}

    def verbs(self) -> dict[str, str]:
        """Modules and packages whose name ends in -ing, with the reason: a noun of the field (else empty)."""
        words = self._kept.get("nouns", {})
        last = {name: name.rpartition(".")[2] for name in self.modules}
        return {
            name: words.get(name, words.get(word, "")) for name, word in sorted(last.items()) if word.endswith("ing")
        }

    def lengths(self) -> list[int]:
        """Lines of every function, ascending."""
        return sorted(length(one) for module in self.modules.values() for one in module.functions())

    def long(self, limit: int = 60) -> dict[str, int]:
        """Functions of more lines than ``limit``."""
        result = ((module, one) for module in self.modules.values() for one in module.functions())
        return {f"{module.name}.{one.name}": length(one) for module, one in result if length(one) > limit}

    @property
    def own(self) -> list[Module]:
        """The modules below ``src/``."""
        return [module for module in self.modules.values() if module.name.startswith("streamgauge")]

    def docstrings(self) -> tuple[int, int]:
        """Public modules, classes, functions and methods of ``src/`` that have a docstring, and all of them."""
        documented = [ast.get_docstring(node) is not None for module in self.own for node in module.public()]
        return sum(documented), len(documented)

    def short_docstrings(self) -> int:
        """Docstrings of ``src/`` with fewer words than ``SHORT_DOCSTRING``."""
        nodes = (node for module in self.own for node in module.nodes if isinstance(node, Documented))
        return sum(0 < len(words(ast.get_docstring(node) or "")) < SHORT_DOCSTRING for node in nodes)

    def private_names(self) -> Counter[str]:
        """How often ``src/`` binds each of the names of ``PRIVATE``."""
        bound: Counter[str] = Counter()
        for module in self.own:
            bound.update(bindings(module.tree))
        return Counter({name: bound[name] for name in PRIVATE if bound[name]})


def load(root: Path = ROOT) -> Structure:
    """The structure of the repository below ``root``."""
    reasons = tomllib.loads((root / "tests" / "structure.toml").read_text(encoding="utf-8"))
    return Structure(modules(root), reasons)


def report(structure: Structure) -> Iterator[str]:
    """The figures as lines of text."""
    results = list(structure.modules.values())
    sizes = sorted(module.lines for module in results)
    largest = max(results, key=lambda module: module.lines)
    by_layer = Counter(module.layer for module in results)
    yield f"files: {len(results)} ({_counted(by_layer)})"
    yield f"lines: {sum(sizes):,}, of code {sum(module.code for module in results):,}"
    yield f"file: median {median(sizes):g} lines, largest {largest.lines} ({largest.name})"
    yield from _listed("files over 500 lines", (f"{name}: {lines}" for name, lines in structure.large().items()))
    yield from _one_importer(structure.one_importer())
    twice = structure.twice()
    unexplained = [f"{name}: {', '.join(where)}" for name, (where, why) in twice.items() if not why]
    yield f"class names that occur twice: {len(twice)}, explained {len(twice) - len(unexplained)}"
    yield from _listed("unexplained", unexplained)
    verbs = structure.verbs()
    unexplained = [name for name, why in verbs.items() if not why]
    yield f"modules ending in -ing: {len(verbs)}, nouns of the field {len(verbs) - len(unexplained)}"
    yield from _listed("unexplained", unexplained)
    lengths = structure.lengths()
    p90 = quantiles(lengths, n=10)[-1]
    yield f"functions: {len(lengths):,}, lines: median {median(lengths):g}, p90 {p90:g}, max {lengths[-1]}"
    yield from _listed("functions over 60 lines", (f"{name}: {lines}" for name, lines in structure.long().items()))
    told, of = structure.docstrings()
    yield f"docstrings of public names in src/: {told:,} of {of:,} ({told / of:.1%})"
    yield from _wording(structure)


def _wording(structure: Structure) -> Iterator[str]:
    lines = sum(module.lines for module in structure.own)
    comments = sum(module.comments for module in structure.own)
    private = structure.private_names()
    share = comments / max(lines, 1)
    yield f"src/: {len(structure.own)} files, {lines:,} lines, comments on {comments:,} ({share:.1%})"
    yield f"docstrings under {SHORT_DOCSTRING} words: {structure.short_docstrings()}"
    yield f"bindings of private names: {private.total()} ({_counted(private)})"


def _one_importer(alone: Mapping[str, tuple[str, str]]) -> Iterator[str]:
    kinds = Counter(why.partition(":")[0] if ":" in why else "a pair over 500 lines" if "pair" in why else "other"
                    for _, why in alone.values() if why)  # fmt: skip
    yield f"modules with exactly one importer: {len(alone)} ({_counted(kinds)})"
    yield from _listed("without a reason", (f"{name} <- {by}" for name, (by, why) in alone.items() if not why))
    yield from _listed("with a reason", (f"{name} <- {by}: {why}" for name, (by, why) in alone.items() if why))


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items(), key=lambda entry: -entry[1]))


def _listed(heading: str, lines: Iterable[str]) -> Sequence[str]:
    told = list(lines)
    return [f"  {heading}: {len(told)}", *(f"    {line}" for line in told)] if told else []


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # a reader that has seen enough, as `head`, ends this program
    print("\n".join([*report(load()), *report_pages(pages(ROOT))]))
