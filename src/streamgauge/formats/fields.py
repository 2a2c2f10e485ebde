"""Dataclasses of the model as JSON objects and back, checked field by field against their declared types.

Supported types: str, int, float, bool, ``None`` unions, StrEnum, Literal, tuples, frozensets, string-keyed mappings
and nested dataclasses. FieldError names the field (``semantics.tick``), what is wrong and what is allowed.
"""

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")


class FieldError(ValueError):
    """A field of a JSON object that is missing, unknown, or of a wrong type or value."""


def encode(value: object, leave_out: Collection[str] = ()) -> Any:
    """A model value as JSON data; sets are sorted, the fields ``leave_out`` of the outermost dataclass are omitted."""
    if is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in fields(value) if field.name not in leave_out]
        return {name: encode(getattr(value, name)) for name in names}
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, frozenset):
        # Sorted, so that equal values are equal JSON: run folders and caches compare it as text.
        return sorted(map(encode, value))
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [encode(item) for item in value]
    # JSON has no NaN or infinity; ``float`` reads the texts back.
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def decode(kind: type[T], data: object, where: str = "", preset: Mapping[str, object] | None = None) -> T:
    """The dataclass ``kind`` from a JSON object; ``preset`` has fields that the object does not contain.

    ``where`` is the prefix of field names in errors.
    """
    preset = preset or {}
    if not isinstance(data, Mapping):
        raise FieldError(f"{where or kind.__name__} is {_short(data)}: expected an object")
    hints = _hints(kind)  # type: ignore[arg-type]
    names = [name for name in hints if name not in preset]
    for name in data:
        if name not in names:
            raise FieldError(f"{_dotted(where, name)} is unknown: the fields are {', '.join(names)}")
    values = {name: _decode(hints[name], data[name], _dotted(where, name)) for name in names if name in data}
    for field in fields(kind):  # type: ignore[arg-type]
        if field.name in names and field.name not in data and field.default is field.default_factory is MISSING:
            raise FieldError(f"{_dotted(where, field.name)} is missing")
    try:
        return kind(**values, **preset)
    except ValueError as error:
        raise FieldError(f"{where or kind.__name__}: {error}") from error


@cache
def _hints(kind: Any) -> Mapping[str, Any]:
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}


def _dotted(where: str, name: object) -> str:
    return f"{where}.{name}" if where else str(name)


def _short(data: object) -> str:
    return repr(data)[:80]


def _decode(kind: Any, data: object, where: str) -> Any:
    if isinstance(kind, type) and is_dataclass(kind):
        return decode(kind, data, where)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return _one_of(kind, {member.value: member for member in kind}, data, where)
    return _PLAIN.get(kind, _compound)(kind, data, where)


def _compound(kind: Any, data: object, where: str) -> Any:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        inner = [argument for argument in arguments if argument is not NoneType]
        return None if data is None and NoneType in arguments else _decode(inner[0], data, where)
    if origin is Literal:
        return _one_of(kind, {argument: argument for argument in arguments}, data, where)
    if origin in (tuple, frozenset):
        return _items(kind, data, where)
    return _mapping(arguments[1] if arguments else object, data, where)


def _items(kind: Any, data: object, where: str) -> Any:
    origin, arguments = get_origin(kind), get_args(kind)
    if not isinstance(data, list | tuple):
        raise FieldError(f"{where} is {_short(data)}: expected a list")
    variadic = origin is frozenset or arguments[-1] is Ellipsis
    if not variadic and len(data) != len(arguments):
        raise FieldError(f"{where} has {len(data)} items: expected {len(arguments)}")
    kinds = [arguments[0]] * len(data) if variadic else arguments
    return origin(_decode(one, item, f"{where}[{n}]") for n, (one, item) in enumerate(zip(kinds, data, strict=True)))


def _mapping(kind: Any, data: object, where: str) -> dict[str, Any]:
    if not isinstance(data, Mapping):
        raise FieldError(f"{where} is {_short(data)}: expected an object")
    return {key: _decode(kind, value, _dotted(where, key)) for key, value in data.items()}


def _one_of(_kind: Any, allowed: Mapping[Any, Any], data: object, where: str) -> Any:
    if not isinstance(data, str) or data not in allowed:
        raise FieldError(f"{where} is {_short(data)}: expected one of {', '.join(map(repr, allowed))}")
    return allowed[data]


def _number(_kind: Any, data: object, where: str) -> float:
    try:
        # Also texts, because "Infinity" and "NaN" are written as such.
        if isinstance(data, int | float | str) and not isinstance(data, bool):
            return float(data)
    except (ValueError, OverflowError):
        pass
    raise FieldError(f"{where} is {_short(data)}: expected a number")


def _exactly(kind: type, data: object, where: str) -> Any:
    # ``isinstance`` would accept true as a whole number.
    if type(data) is not kind:
        names = {str: "a string", int: "a whole number", bool: "true or false"}
        raise FieldError(f"{where} is {_short(data)}: expected {names[kind]}")
    return data


_PLAIN: Mapping[Any, Callable[[Any, object, str], Any]] = {
    str: _exactly,
    int: _exactly,
    bool: _exactly,
    float: _number,
    object: lambda _kind, data, _where: data,
}
