"""Closures and answers from scratch, in columns: every rule on everything until nothing is new, every query anew.

Nothing of the incremental closure or evaluator is used: numpy joins for the rules, pyoxigraph for the queries.
"""

import numpy as np
import pyoxigraph as ox

from streamgauge.model.algebra import Var
from streamgauge.model.terms import RDF_TYPE
from streamgauge.query.printer import sparql

_HALF = 32


class Scratch:
    """The closure of a set of facts, made anew by each ``look``, and a store that holds exactly that.

    Facts of one class or one property are one sorted column of numbers, ``subject << 32 | object``.
    """

    def __init__(self, rules):
        self._rules = rules.rules
        self._numbers, self._terms, self._literal = {}, [], []
        for rule in rules.rules:
            if isinstance(rule.head.object, str):
                self._number(rule.head.object)
        self._coded, self._shown = {}, {}
        self.store, self.closure = ox.Store(), set()

    def look(self, facts):
        """Make the closure of all ``facts``; the triples by which it differs from the last one: came, went."""
        columns = self._columns(facts)
        self._proper = ~np.array(self._literal, bool)
        columns = self._closed(columns)
        came = self._decoded(columns, self._shown)
        went = self._decoded(self._shown, columns)
        self._shown = columns
        self.closure = (self.closure - went) | came
        for triple in went:
            self.store.remove(_quad(triple))
        lines = "\n".join(f"{' '.join(triple)} ." for triple in came)
        self.store.extend(ox.parse(lines, format=ox.RdfFormat.N_TRIPLES))
        return came, went

    def rows(self, form):
        """The answer of a query as a set, evaluated anew."""
        result = self.store.query(sparql(form))
        names = [variable.value for variable in result.variables]
        order = [names.index(name) for name in form.variables]
        return {tuple(None if s[at] is None else str(s[at]) for at in order) for s in result}

    def _number(self, term):
        if term not in self._numbers:
            self._numbers[term] = len(self._terms)
            self._terms.append(term)
            self._literal.append(term.startswith('"'))
        return self._numbers[term]

    def _code(self, triple):
        subject, predicate, end = triple
        name = (predicate, end if predicate == RDF_TYPE else None)
        return name, self._number(subject) << _HALF | self._number(end)

    def _columns(self, facts):
        results = {}
        for triple in facts:
            coded = self._coded.get(triple)
            if coded is None:
                coded = self._coded[triple] = self._code(triple)
            results.setdefault(coded[0], []).append(coded[1])
        return {name: np.unique(np.array(keys, np.int64)) for name, keys in results.items()}

    def _closed(self, columns):
        grown = True
        while grown:
            grown = False
            for rule in self._rules:
                name, keys = self._derived(rule, columns)
                if len(keys):
                    old = columns.get(name, _NONE)
                    new = np.union1d(old, keys)
                    grown |= len(new) > len(old)
                    columns[name] = new
        return columns

    def _derived(self, rule, columns):
        table = None
        name = _name(rule.head)
        if not all(_name(pattern) in columns for pattern in rule.body):
            return name, _NONE
        for pattern in rule.body:
            table = _joined(table, self._matches(pattern, columns))
        subject, end = (self._column(node, table) for node in (rule.head.subject, rule.head.object))
        return name, (subject << _HALF | end)[self._proper[subject]]

    def _column(self, node, table):
        if isinstance(node, Var):
            return table[node.name]
        return np.full(len(next(iter(table.values()))), self._number(node), np.int64)

    def _matches(self, pattern, columns):
        """The solutions of one pattern, a column a variable."""
        keys = columns[_name(pattern)]
        results = {}
        for node, values in ((pattern.subject, keys >> _HALF), (pattern.object, keys & (1 << _HALF) - 1)):
            if isinstance(node, Var):
                assert node.name not in results, "a pattern with one variable twice is not done here"
                results[node.name] = values
        return results

    def _decoded(self, some, other):
        """The triples of columns that others do not have."""
        results = set()
        for name, keys in some.items():
            for key in np.setdiff1d(keys, other.get(name, _NONE), assume_unique=True).tolist():
                results.add((self._terms[key >> _HALF], name[0], self._terms[key & (1 << _HALF) - 1]))
        return results


_NONE = np.array([], np.int64)


def _name(pattern):
    return pattern.predicate, pattern.object if pattern.predicate == RDF_TYPE else None


def _joined(one, two):
    """Solutions of both: tables as columns by variable, that share one variable."""
    if one is None:
        return two
    (shared,) = set(one) & set(two)
    order = np.argsort(two[shared], kind="stable")
    keys = two[shared][order]
    first, last = np.searchsorted(keys, one[shared], "left"), np.searchsorted(keys, one[shared], "right")
    left = np.repeat(np.arange(len(first)), last - first)
    inner = np.arange(len(left)) - np.repeat(np.cumsum(last - first) - (last - first), last - first)
    right = order[np.repeat(first, last - first) + inner]
    return {name: values[left] for name, values in one.items()} | {name: values[right] for name, values in two.items()}


def _quad(triple):
    (quad,) = ox.parse(f"{' '.join(triple)} .", format=ox.RdfFormat.N_TRIPLES)
    return quad
