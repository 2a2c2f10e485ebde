"""Semantics values as JSON: one field per choice, enumerations by their text, unset fields at their defaults."""

from collections.abc import Mapping
from typing import Any

from streamgauge.formats.fields import FieldError, decode, encode
from streamgauge.model.semantics import Semantics

__all__ = ["FieldError", "from_json", "to_json"]


def to_json(semantics: Semantics) -> dict[str, Any]:
    """Every field as JSON data, times in ms."""
    data: dict[str, Any] = encode(semantics)
    return data


def from_json(data: Mapping[str, object], where: str = "semantics") -> Semantics:
    """The Semantics of a JSON object; FieldError names a wrong field and the allowed values."""
    return decode(Semantics, data, where)
