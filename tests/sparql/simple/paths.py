"""Triple patterns and property paths (18.4): the solutions of one pattern over one graph."""

from collections.abc import Sequence
from itertools import count

from streamgauge.model import algebra as al

Solution = dict[str, str]
Graph = list[tuple[str, str, str]]
End = al.Node
_FRESH = count()


def walked(start: End, path: al.Var | al.Path, end: End, graph: Graph) -> list[Solution]:
    """eval(Path(start, path, end)) over a graph; a variable in place of a path is a triple pattern."""
    match path:
        case al.Var() | str():
            return [results for triple in graph if (results := _matched((start, path, end), triple)) is not None]
        case al.Inverse(path=inner):
            return walked(end, inner, start, graph)
        case al.Sequence(steps=steps):
            return _sequence(start, steps, end, graph)
        case al.Alternative(choices=choices):
            return [results for choice in choices for results in walked(start, choice, end, graph)]
        case al.NegatedSet(forward=forward, backward=backward):
            ahead = [(start, end, triple) for triple in graph if triple[1] not in forward] if _any(path) else []
            back = [(end, start, triple) for triple in graph if triple[1] not in backward] if backward else []
            pairs = [(item, (one, al.Var(".predicate"), other)) for one, other, item in ahead + back]
            results = [_matched(pattern, triple) for triple, pattern in pairs]
            return [{n: c for n, c in item.items() if n != ".predicate"} for item in results if item is not None]
        case al.Repeat(path=inner, modifier=modifier):
            return _repeated(start, inner, modifier, end, graph)


def _any(path: al.NegatedSet) -> bool:
    """Whether the set looks forward: ``!(^a)`` alone does not."""
    return bool(path.forward) or not path.backward


def _fresh() -> str:
    return f".step{next(_FRESH)}"


def _matched(pattern: tuple[End, End, End], triple: tuple[str, str, str]) -> Solution | None:
    results: Solution = {}
    for node, cell in zip(pattern, triple, strict=True):
        if isinstance(node, al.Var):
            if results.setdefault(node.name, cell) != cell:
                return None
        elif node != cell:
            return None
    return results


def _sequence(start: End, steps: Sequence[al.Path], end: End, graph: Graph) -> list[Solution]:
    if len(steps) == 1:
        return walked(start, steps[0], end, graph)
    middle = al.Var(_fresh())
    results = []
    for one in walked(start, steps[0], middle, graph):
        for other in _sequence(middle, steps[1:], end, graph):
            if all(one[name] == other[name] for name in one.keys() & other.keys()):
                both = one | other
                results.append({name: cell for name, cell in both.items() if name != middle.name})
    return results


def _repeated(start: End, path: al.Path, modifier: str, end: End, graph: Graph) -> list[Solution]:
    """``?``, ``*`` and ``+``: each pair of ends once."""
    if isinstance(start, al.Var) and not isinstance(end, al.Var):
        return _repeated(end, al.Inverse(path), modifier, start, graph)
    if not isinstance(start, al.Var):
        reached = _reached(start, path, modifier, graph)
        if isinstance(end, al.Var):
            return [{end.name: item} for item in reached]
        return [{}] if end in reached else []
    assert isinstance(end, al.Var)
    pairs = [(node, other) for node in _nodes(graph) for other in _reached(node, path, modifier, graph)]
    if start == end:
        return [{start.name: item} for item, other in pairs if item == other]
    return [{start.name: item, end.name: other} for item, other in pairs]


def _nodes(graph: Graph) -> list[str]:
    """nodes(G): the subjects and objects."""
    return list(dict.fromkeys(node for triple in graph for node in (triple[0], triple[2])))


def _reached(start: str, path: al.Path, modifier: str, graph: Graph) -> list[str]:
    """Where a path leads from a term: ALP of 18.4 for ``*`` and ``+``."""
    steps = _next(start, path, graph)
    if modifier == "?":
        return list(dict.fromkeys([start, *steps]))
    seen: list[str] = []
    waiting = [start] if modifier == "*" else steps
    while waiting:
        node = waiting.pop(0)
        if node not in seen:
            seen.append(node)
            waiting += _next(node, path, graph)
    return seen


def _next(start: str, path: al.Path, graph: Graph) -> list[str]:
    return [entry[".next"] for entry in walked(start, path, al.Var(".next"), graph)]
