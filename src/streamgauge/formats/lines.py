"""JSON lines between the harness and an engine: elements and advances in, answers out, terms in N-Triples.

``{"t": ms, "n": sequence, "stream": IRI, "add": "N-Triples text", "remove": ..., "until": ms}``, ``{"advance": ms}``;
``{"vars": [names], "add": [rows], "remove": [rows], "kind": ..., "instant": ms, "scope": [ms, ms]}``. Absent is empty.
``{"late": n}`` is the number of elements that were too late to count. docs/pipe.md is the whole contract.
"""

import json
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from json.encoder import encode_basestring_ascii
from typing import Annotated, Any, Final, Protocol, TypeAlias, get_args

import msgspec
import pyoxigraph as ox

from streamgauge.formats.bounds import BoundError, check_characters, check_turtle, check_values
from streamgauge.formats.canonical import parse_term, to_term, to_triples
from streamgauge.model.answer import Answer, AnswerKind
from streamgauge.model.element import StreamElement
from streamgauge.model.phrases import offered
from streamgauge.model.terms import Row, Term, Triple

_KINDS = get_args(AnswerKind)
_IRI = r'<[^<>"\\ \n]*+>'
# Repetitions are possessive: a term of a megabyte takes no memory for ways back.
_TERM = (
    rf'(?:{_IRI}|_:[^\\ \n]++|"[^"\\\n]*+(?:\\["\\nrt][^"\\\n]*+)*+"'
    r"(?:@[a-z0-9-]++|\^\^(?!<http://www\.w3\.org/2001/XMLSchema#string>)<[^<>\\ \n]*+>)?+)"
)
"""A term in canonical syntax; its text may have blanks."""
_TERM_LINES = re.compile(rf"(?:{_TERM}\n)*+")
_SUBJECT_LINES = re.compile(rf"(?:(?:{_IRI}|_:[^\\ \n]++)\n)*+")
_PREDICATE_LINES = re.compile(rf"(?:{_IRI}\n)*+")
_ENDS = frozenset(("\n", "\r\n", ""))
_raw = json.JSONDecoder().raw_decode


ELEMENT_VALUES: Final = 1_000
"""Maximum JSON values in an element's line, whose triples are one text: a value takes ten times its bytes."""


class LineError(ValueError):
    """A line that is not an element, advance or answer; the sentence names the field."""


@dataclass(frozen=True, slots=True)
class Advance:
    """A watermark: no element before ``time`` (ms) will follow, so report all that is due up to it."""

    time: int


@dataclass(frozen=True, slots=True)
class Late:
    """The number of elements that were too late to count since the task began."""

    count: int


Input: TypeAlias = StreamElement | Advance
"""Also for ``isinstance`` of every item: to write the union there builds it at each call, 0.3 us."""
Output: TypeAlias = Answer | Late


def encode_element(element: StreamElement) -> bytes:
    """One line for an element; terms are written unchanged."""
    more = f',"remove":{_text(element.removed)}' if element.removed else ""
    if element.until is not None:
        more += f',"until":{element.until}'
    head = f'{{"t":{element.time},"n":{element.sequence},"stream":{encode_basestring_ascii(element.stream)}'
    return f'{head},"add":{_text(element.added)}{more}}}\n'.encode()


def encode_advance(time: int) -> bytes:
    """One line that advances time (ms)."""
    return b'{"advance":%d}\n' % time


Whole: TypeAlias = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
"""A time (ms) or a number that tables hold too: both have columns of 64 bits."""


class JsonLine(msgspec.Struct, gc=False):
    """The common form of a line: an element, or an advance."""

    t: Whole | None = None
    n: Whole | None = None
    stream: str | None = None
    add: str = ""
    remove: str = ""
    until: Whole | None = None
    advance: Whole | None = None


class _KnownLine(JsonLine, gc=False, forbid_unknown_fields=True):
    """An element or advance of a file or message: unknown fields are refused, while engines ignore them."""


FIELDS: Final = tuple(field.name for field in msgspec.structs.fields(JsonLine))

_line = msgspec.json.Decoder(JsonLine).decode
_known_line = msgspec.json.Decoder(_KnownLine).decode
_lines = msgspec.json.Decoder(JsonLine).decode_lines
_known_lines = msgspec.json.Decoder(_KnownLine).decode_lines


def only_advances(row: JsonLine) -> bool:
    """Whether a line with an advance has nothing else: it could not be an element too."""
    return row.t is None and row.n is None and row.until is None and not (row.stream or row.add or row.remove)


def decode_rows(lines: bytes, known: bool) -> list[JsonLine] | None:
    """The fields of several lines; ``None`` if one is empty or invalid.

    With ``known`` also if one has an unknown field.
    """
    try:
        rows: list[JsonLine] = [*_known_lines(lines)] if known else _lines(lines)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    # The decoder skips empty lines, which are errors when read one by one.
    return rows if len(rows) == lines.count(b"\n") + (not lines.endswith(b"\n")) else None


class Unsaid(Protocol):
    """The defaults of an element: its stream, sequence number and time (ms); ``None`` if it has to state them."""

    @property
    def stream(self) -> str | None:
        """The IRI of its stream."""

    @property
    def sequence(self) -> int | None:
        """Its sequence number, by default."""

    @property
    def time(self) -> int | None:
        """Its application time, ms."""


def decode_input(line: bytes | str, unsaid: Unsaid | None = None) -> Input:
    """The element or advance of a line; triples that look canonical are used as written. LineError.

    ``unsaid`` has the defaults for files and messages, whose unknown fields are refused. Without it, as for engines,
    every element states its stream, number and time, and unknown fields are ignored.
    """
    try:
        read = _line(line) if unsaid is None else _known_line(line)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return _decoded(line, unsaid)
    if read.advance is not None and only_advances(read):
        return Advance(read.advance)
    at, until = read.t, read.until
    # Everything unusual takes the slow way, whose errors name the field.
    if read.advance is not None or at is None or read.n is None or read.stream is None:
        return _decoded(line, unsaid)
    if until is not None and until <= at:
        return _decoded(line, unsaid)
    return StreamElement(read.stream, at, read.n, _triples(read.add, "add"), _triples(read.remove, "remove"), until)


def _decoded(line: bytes | str, unsaid: Unsaid | None) -> Input:
    """Decode a line field by field, for unusual lines and for error messages."""
    try:
        check_values(_utf8(line), ELEMENT_VALUES, "an element", "its triples are one text, of N-Triples")
        data = _object(line)
        check_characters(data)
    except (BoundError, RecursionError) as error:
        raise LineError(f"not a readable line: {error}") from error
    if unsaid is not None and (unknown := [name for name in data if name not in FIELDS]):
        raise LineError(f"field {unknown[0]} is unknown: {offered(unknown[0], FIELDS)}")
    if "advance" in data:
        if beside := [name for name in FIELDS if name != "advance" and data.get(name) not in (None, "")]:
            raise LineError(f"field {beside[0]} beside advance: an element and an advance are two lines")
        return Advance(_whole(data, "advance"))
    if unsaid is not None:
        present = {name: value for name, value in data.items() if value is not None}
        defaults = {"stream": unsaid.stream, "n": unsaid.sequence, "t": unsaid.time}
        # Null is absent: a member that says nothing must not override a default.
        data = {name: value for name, value in defaults.items() if value is not None} | present
    stream = data.get("stream")
    if not isinstance(stream, str):
        raise LineError(f"field stream is {_short(stream)}: expected the stream's IRI")
    time = _whole(data, "t")
    until = _whole(data, "until") if data.get("until") is not None else None
    if until is not None and until <= time:
        raise LineError(f"field until is {until}: an element ends after its time, {time} ms")
    added, removed = _triples(data.get("add"), "add"), _triples(data.get("remove"), "remove")
    return StreamElement(stream, time, _whole(data, "n"), added, removed, until)


class _Said(msgspec.Struct, omit_defaults=True, gc=False):
    """The JSON form of an answer."""

    vars: tuple[str, ...]
    add: tuple[Row, ...]
    remove: tuple[Row, ...] | None = None
    kind: str | None = None
    instant: int | None = None
    scope: tuple[int, int] | None = None


_write = msgspec.json.Encoder().encode_lines


def encode_answers(answers: Iterable[Answer]) -> bytes:
    """One line per answer; ``received`` is not written, since the harness stamps it."""
    encoded = [
        _Said(
            answer.variables, answer.added, answer.removed or None, _unusual(answer.kind), answer.instant, answer.scope
        )
        for answer in answers
    ]
    try:
        return _write(encoded)
    except UnicodeEncodeError:
        # Half of a surrogate pair in a term has no UTF-8, but an escape in JSON.
        return b"".join([f"{json.dumps(msgspec.to_builtins(answer))}\n".encode() for answer in encoded])


def encode_answer(answer: Answer) -> bytes:
    """One line for an answer."""
    return encode_answers((answer,))


def _unusual(kind: AnswerKind) -> str | None:
    return None if kind == "solutions" else kind


def encode_late(count: int) -> bytes:
    """One line with the number of elements that were too late to count."""
    return b'{"late":%d}\n' % count


def decode_output(line: bytes | str) -> Output:
    """The content of a line of an engine: an answer, or the number of late elements. LineError."""
    data = _object(line)
    return Late(_whole(data, "late")) if "late" in data else _answer(data)


def decode_answer(line: bytes | str) -> Answer:
    """The answer of a line, its terms canonical, ``received`` 0; LineError names the field."""
    return _answer(_object(line))


def _answer(data: dict[str, Any]) -> Answer:
    kind = data.get("kind", "solutions")
    if kind not in _KINDS:
        raise LineError(f"field kind is {_short(kind)}: expected one of {', '.join(_KINDS)}")
    instant = _whole(data, "instant") if data.get("instant") is not None else None
    variables = _variables(data, kind)
    width = {"solutions": len(variables), "triples": 3, "boolean": 1}[kind]
    added, removed = _rows(data, "add", width), _rows(data, "remove", width)
    return Answer(variables, added, removed, kind, instant, _scope(data))


def _utf8(line: bytes | str) -> str:
    try:
        return line if isinstance(line, str) else line.decode()
    except UnicodeDecodeError as error:
        raise LineError("not a line of JSON: it is not UTF-8 text") from error


def _object(line: bytes | str) -> dict[str, Any]:
    try:
        data = _loaded(_utf8(line))
    except json.JSONDecodeError as error:
        raise LineError(f"not a line of JSON from character {error.pos + 1} on") from error
    except RecursionError as error:
        raise LineError("not a readable line of JSON: nested too deeply") from error
    except ValueError as error:
        raise LineError(f"not a line of JSON: {error}") from error
    if not isinstance(data, dict):
        raise LineError(f"the line is {_short(data)}: expected a JSON object")
    return data


def _loaded(text: str) -> Any:
    """The value of a line; usually nothing surrounds it but the line's end."""
    try:
        data, end = _raw(text)
    except ValueError:
        return json.loads(text)
    # ``json.loads`` has the error for text after the value.
    return data if text[end:] in _ENDS else json.loads(text)


def _whole(data: dict[str, Any], name: str) -> int:
    value = data.get(name)
    if type(value) is not int:
        raise LineError(f"field {name} is {_short(value)}: expected a whole number (ms or a sequence number)")
    return _kept(value, name)


def _short(value: object) -> str:
    try:
        return "missing" if value is None else repr(value)[:80]
    except RecursionError:
        return f"a deeply nested {type(value).__name__}"


def _text(triples: Sequence[Triple]) -> str:
    text: str = encode_basestring_ascii("".join([f"{s} {p} {o} .\n" for s, p, o in triples]))
    return text


def _triples(text: Any, name: str) -> tuple[Triple, ...]:
    """N-Triples text split at blanks; text that is not in canonical layout is parsed."""
    if not text and text in (None, ""):
        return ()
    if not isinstance(text, str):
        raise LineError(f"field {name} is {_short(text)}: expected N-Triples text")
    terms = terms_of(text)
    if terms is None:
        return _parsed(text, name)
    subjects, predicates, objects = terms[0::3], terms[1::3], terms[2::3]
    if _SUBJECTS.accepts(subjects) and _PREDICATES.accepts(predicates) and _OBJECTS.accepts(objects):
        return tuple(zip(subjects, predicates, objects, strict=True))
    return _parsed(text, name)


def terms_of(text: str) -> list[Term] | None:
    """The terms of N-Triples text, three for each triple, cut at its blanks; ``None`` if it is laid out otherwise.

    Whether they are terms is left to ``are_canonical``.
    """
    count = text.count("\n")
    # Worked example: ``a p b .`` and ``c q d .`` on two lines become the parts a p b . c q d . and an empty one, 4 * 2
    # + 1; every fourth is the dot, and without these the terms are left.
    parts = text.replace(" .\n", " . ").split(" ")
    if len(parts) == 4 * count + 1 and not parts.pop() and parts[3::4] == ["."] * count:
        del parts[3::4]
        return parts
    # Texts of literals contain blanks: an object is all that follows its predicate.
    lines = text.split(" .\n")
    terms = [term for line in lines[:-1] for term in line.split(" ", 2)]
    return terms if not lines[-1] and len(lines) == count + 1 and len(terms) == 3 * count else None


def are_canonical(terms: Collection[Term], lines: re.Pattern[str] = _TERM_LINES) -> bool:
    """Whether terms are in canonical syntax, so that they can be used as written; ``lines`` matches a term a line."""
    text = "\n".join([*terms, ""])
    # A text with a line end within would pass as two terms.
    return text.count("\n") == len(terms) and lines.fullmatch(text) is not None


class _Position:
    """The canonical terms at one position of a triple: as streams repeat most of theirs, only new ones are checked."""

    def __init__(self, lines: re.Pattern[str]) -> None:
        self._lines = lines
        self._seen: set[Term] = set()

    def accepts(self, terms: Sequence[Term]) -> bool:
        """Whether terms are canonical and allowed here."""
        if self._seen.issuperset(terms):
            return True
        new = set(terms).difference(self._seen)
        if not are_canonical(new, self._lines):
            return False
        # Cleared as a whole, as ``_known`` is.
        if len(self._seen) >= _SEEN_LIMIT:
            self._seen.clear()
        self._seen.update(term for term in new if len(term) <= _SEEN_CHARACTERS)
        return True


_SEEN_LIMIT: Final = 2**14
_SEEN_CHARACTERS: Final = 200
"""Characters of a term that is remembered; three full sets of such terms take 12 MB."""

_SUBJECTS: Final = _Position(_SUBJECT_LINES)
_PREDICATES: Final = _Position(_PREDICATE_LINES)
_OBJECTS: Final = _Position(_TERM_LINES)


def _parsed(text: str, name: str) -> tuple[Triple, ...]:
    try:
        check_turtle(text)
        return to_triples(ox.parse(text, format=ox.RdfFormat.N_TRIPLES))
    except (SyntaxError, ValueError) as error:
        raise LineError(f"field {name} is not N-Triples: {error}") from error


def _variables(data: dict[str, Any], kind: AnswerKind) -> tuple[str, ...]:
    names = data.get("vars", None if kind == "solutions" else [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise LineError(f"field vars is {_short(names)}: expected a list of variable names")
    try:
        "".join(names).encode()
    except UnicodeEncodeError:
        raise LineError(f"field vars is {ascii(names)[:80]}: half of a surrogate pair is not a character") from None
    return tuple(names)


def _scope(data: dict[str, Any]) -> tuple[int, int] | None:
    scope = data.get("scope")
    if scope is None:
        return None
    if not isinstance(scope, list) or len(scope) != 2 or any(type(border) is not int for border in scope):
        raise LineError(f"field scope is {_short(scope)}: expected [start, end] in ms")
    return _kept(scope[0], "scope"), _kept(scope[1], "scope")


def _kept(value: int, name: str) -> int:
    """Check that a number fits the integer columns of tables."""
    if not -(1 << 63) <= value < 1 << 63:
        raise LineError(f"field {name} is {value}: expected a number within 64 bits")
    return value


def _rows(data: dict[str, Any], name: str, width: int) -> tuple[Row, ...]:
    rows = data.get(name, [])
    if not isinstance(rows, list):
        raise LineError(f"field {name} is {_short(rows)}: expected a list of rows")
    return tuple([_row(row, f"{name}[{number}]", width) for number, row in enumerate(rows)])


def _row(row: object, where: str, width: int) -> Row:
    if not isinstance(row, list) or len(row) != width:
        raise LineError(f"field {where} is {_short(row)}: expected a list of {width} terms")
    return tuple(_terms(row, where))


def _terms(row: Iterable[object], where: str) -> list[Term | None]:
    terms: list[Term | None] = []
    for item in row:
        if item is None:
            terms.append(None)
            continue
        known = _known.get(item) if isinstance(item, str) else None
        terms.append(known or _learn(item, where))
    return terms


_known: dict[str, Term] = {}
_KNOWN_LIMIT = 1_000_000


def _learn(item: object, where: str) -> Term:
    if not isinstance(item, str):
        raise LineError(f"field {where} holds {_short(item)}: expected an N-Triples term or null")
    try:
        term = to_term(parse_term(item))
    except ValueError as error:
        raise LineError(f"field {where} holds {_short(item)}: expected an N-Triples term: {error}") from error
    # Cleared as a whole: which terms recur is not known, and a full table costs memory only once.
    if len(_known) >= _KNOWN_LIMIT:
        _known.clear()
    _known[item] = term
    return term
