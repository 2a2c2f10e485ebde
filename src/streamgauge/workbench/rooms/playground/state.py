"""The state of the playground as a value: read from JSON, a form or a link, and written as a link.

A link contains the state as compressed JSON in URL-safe base64; its size is bounded when it is read.
"""

import base64
import binascii
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from streamgauge.formats.bounds import BoundError, read_json
from streamgauge.formats.fields import FieldError
from streamgauge.model.mistake import MistakeError
from streamgauge.model.semantics import Semantics
from streamgauge.query import dialect_names
from streamgauge.workbench.rooms.playground.fields import CONTROLS, fields_of, profile_names, semantics_of, started_from
from streamgauge.workbench.rooms.playground.stream_text import SIMPLE, SYNTAXES

MOST_BYTES: Final = 4 * 2**20
"""Bytes that a state has at most."""
LATEST: Final = 10**15
"""The latest time (ms), and the earliest below 0."""
LONGEST_LINK: Final = 40_000
"""Characters of a link that servers and browsers still take."""


class StateError(MistakeError, ValueError):
    """A state that cannot be read; ``where`` is its part (query, stream, static, a, b, advance, recording)."""

    def __init__(self, sentence: str, where: str = "state") -> None:
        super().__init__(sentence)
        self.where = where


@dataclass(frozen=True, slots=True)
class PlaygroundState:
    """All that a person has typed and chosen.

    ``dialect`` is detected where it is empty; ``a`` and ``b`` are semantics as fields with the ``profile`` that they
    started from, ``b`` is ``None`` without a second semantics; ``advance`` (ms) is how far time comes; ``recording``
    are an engine's answers as lines of the pipe. ``width`` (pixels) and ``view`` (ms) are those of the drawing alone.
    """

    query: str
    stream: str = ""
    syntax: str = SIMPLE
    static: str = ""
    dialect: str = ""
    advance: int | None = None
    a: Mapping[str, Any] = field(default_factory=dict)
    b: Mapping[str, Any] | None = None
    recording: str = ""
    width: int = 1100
    view: tuple[int, int] | None = None

    def semantics(self, which: str) -> Semantics:
        """The semantics ``a`` or ``b``; StateError names the field that is wrong."""
        settings = self.a if which == "a" else self.b
        try:
            return semantics_of(dict(settings or {}))
        except FieldError as error:
            raise StateError(str(error), which) from error


_TEXTS: Final = ("query", "stream", "syntax", "static", "dialect", "recording")


def of_json(data: object) -> PlaygroundState:
    """The state from a JSON object; StateError names the mistake."""
    if not isinstance(data, Mapping):
        raise StateError("the state is not JSON object")
    known = (*_TEXTS, "advance", "a", "b", "width", "view")
    if unknown := sorted(set(data) - set(known)):
        raise StateError(f"{unknown[0]} is not part of a state: it has {', '.join(known)}")
    texts = {name: data[name] for name in _TEXTS if name in data}
    for name, text in texts.items():
        if not isinstance(text, str):
            raise StateError(f"{name} is not text", name)
    _check_choices(texts)
    chosen = {which: _semantics(which, data[which]) for which in ("a", "b") if data.get(which) is not None}
    advance = data.get("advance")
    # Not ``isinstance``: true is an int in Python.
    if advance is not None and (type(advance) is not int or abs(advance) > LATEST):
        raise StateError("how far time comes is a whole number of ms, or nothing", "advance")
    width = data.get("width", 1100)
    if type(width) is not int:
        raise StateError("width is a whole number of pixels")
    state = PlaygroundState("", a=chosen.get("a", {}), b=chosen.get("b"), advance=advance)
    return replace(state, **texts, width=min(max(width, 280), 8_000), view=_view(data.get("view")))


def _view(data: object) -> tuple[int, int] | None:
    match data:
        case None:
            return None
        case [int() as first, int() as last] if -LATEST <= first < last <= LATEST:
            return first, last
    raise StateError("view is two times in ms, the first before the last")


def _check_choices(texts: Mapping[str, str]) -> None:
    if texts.get("syntax", SIMPLE) not in SYNTAXES:
        raise StateError(f"there is no notation {texts['syntax']!r}: there are {', '.join(SYNTAXES)}", "stream")
    if texts.get("dialect", "") not in ("", *dialect_names()):
        raise StateError(f"there is no dialect {texts['dialect']!r}: there are {', '.join(dialect_names())}", "query")


def _semantics(which: str, data: object) -> Mapping[str, Any]:
    if not isinstance(data, Mapping) or not all(isinstance(name, str) for name in data):
        raise StateError(f"semantics {which.upper()} is not JSON object", which)
    return dict(data)


def of_text(text: str | bytes) -> PlaygroundState:
    """The state of JSON text; StateError."""
    try:
        data = read_json(text)
    except (BoundError, ValueError, RecursionError) as error:
        raise StateError(f"the state is not JSON: {error}") from None
    return of_json(data)


def to_json(state: PlaygroundState) -> dict[str, Any]:
    """The state without defaults."""
    blank = PlaygroundState("")
    names = (*_TEXTS, "advance")
    document = {name: getattr(state, name) for name in names if getattr(state, name) != getattr(blank, name)}
    for which in ("a", "b"):
        if (settings := getattr(state, which)) is not None:
            document[which] = shortened(dict(settings))
    return document


def shortened(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The fields in which a semantics differs from its profile."""
    profile = str(settings.get("profile", ""))
    if profile not in profile_names():
        return dict(settings)
    usual = fields_of(started_from(profile))
    # ``object`` equals no value, so that unknown fields are kept, for the reader to complain about.
    kept = {name: value for name, value in settings.items() if name != "profile" and value != usual.get(name, object)}
    return {"profile": profile, **kept}


def link(state: PlaygroundState) -> str:
    """The state as the value of an address's parameter; empty if it is too long."""
    text = json.dumps(to_json(state), ensure_ascii=False, separators=(",", ":"))
    encoded = base64.urlsafe_b64encode(zlib.compress(text.encode(), 6)).decode().rstrip("=")
    return encoded if len(encoded) <= LONGEST_LINK else ""


def of_link(value: str) -> PlaygroundState:
    """The state of a link; StateError for one that was cut or is too large."""
    if len(value) > LONGEST_LINK:
        raise StateError("the link is too long: it holds no state")
    try:
        # ``link`` strips the padding, whose equals signs would have to be escaped: here the length is filled up to a
        # multiple of 4.
        packed = base64.urlsafe_b64decode(value + "=" * (-len(value) % 4))
        opened = zlib.decompressobj()
        # At most so many bytes come out: a link of a few kilobytes could unpack to gigabytes of zeros.
        text = opened.decompress(packed, MOST_BYTES)
    except (binascii.Error, ValueError, zlib.error):
        raise StateError("the link was cut or changed: it holds no state") from None
    # The first means that more would have come, the second that the end is missing.
    if opened.unconsumed_tail or not opened.eof:
        raise StateError("the link was cut, or holds too large a state")
    return of_text(text)


def of_form(form: Mapping[str, list[str]]) -> PlaygroundState:
    """The state from the fields of a form: texts, and ``a.FIELD`` and ``b.FIELD`` for semantics; StateError.

    ``start`` (a or b) resets that side to its profile; ``second`` adds B.
    """
    one = {name: values[0].replace("\r\n", "\n") for name, values in form.items() if values}
    data: dict[str, Any] = {name: one[name] for name in _TEXTS if name in one}
    if advance_text := one.get("advance", "").strip():
        data["advance"] = _whole(advance_text, "advance")
    start = one.get("start", "")
    for which in ("a", "b"):
        if which == "a" or one.get("second"):
            data[which] = {"profile": one.get(f"{which}.profile", profile_names()[0])}
            # Without the field the form was sent before the side had controls.
            if start != which and f"{which}.tick" in one:
                data[which] |= _form_fields(form, one, which)
    return of_json(data)


def _form_fields(form: Mapping[str, list[str]], one: Mapping[str, str], which: str) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for control in CONTROLS:
        name = f"{which}.{control.name}"
        match control.kind:
            case "several":
                fields[control.name] = form.get(name, [])
            case "switch":
                fields[control.name] = one.get(name) == "yes"
            case "number":
                text = one.get(name, "").strip()
                fields[control.name] = _whole(text, which) if text else None
            case _:
                fields[control.name] = one.get(name, "")
    return fields


def _whole(text: str, where: str) -> int:
    digits = text.replace(",", "").replace("_", "")
    if not digits.removeprefix("-").isdecimal() or len(digits) > 16:
        raise StateError(f"{text[:40]!r} is not a whole number of ms", where)
    return int(digits)
