"""Values of options and arguments that are read without Pydantic, by which Typer reads all: it takes 0.2 s to start.

A value is *plain* if Typer would read it without an error and the result is certain: texts, numbers in digits, names of
choices, paths that may be read, lists of these. Any other value is left to Typer, with its messages.
"""

import os
import re
from enum import Enum
from pathlib import Path
from typing import Any, Final, get_args, get_origin

_WHOLE: Final = re.compile(r"-?[0-9]{1,15}")
_DECIMAL: Final = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,15})?")
_ATTRIBUTES: Final = ("parser", "clamp", "exists", "resolve_path", "writable", "allow_dash", "path_type")
"""Attributes of a parameter that ask for more than its type and its bounds."""


class _NotPlainError(Exception):
    """The value is left to Typer."""


class PlainCoercion:
    """Stands for the ``RuntimeParam`` of a parameter of Typer, which it has made when a value is not plain."""

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value in the parameter's type; BadParameter."""
        several = param.multiple or param.nargs == -1
        if value is None:
            return () if several else None
        descriptor = param.type_descriptor
        info = descriptor.parameter_info
        try:
            if not any(getattr(info, name, None) for name in _ATTRIBUTES) and info.file_okay and info.dir_okay:
                return _plain(value, descriptor.annotation, info)
        except _NotPlainError:
            pass
        param._runtime_param = None
        return param.get_runtime_param().coerce(value, param=param, ctx=ctx)


def plainly(param: Any) -> Any:
    """A parameter of Typer, whose plain values are read without Pydantic from here on."""
    param._runtime_param = PlainCoercion()
    return param


def _plain(value: Any, annotation: Any, info: Any) -> Any:
    if get_origin(annotation) is list and isinstance(value, list | tuple):
        return [_plain(part, get_args(annotation)[0], info) for part in value]
    if annotation is str and isinstance(value, str):
        return value
    if annotation is Path and isinstance(value, str | Path):
        return _path(value)
    if annotation in (int, float):
        return _number(value, annotation, info)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        for choice in annotation:
            if value is choice or (type(value) is str and value == choice.value):
                return choice
    raise _NotPlainError


def _path(value: str | Path) -> Path:
    path = Path(value)
    if "\0" in str(value) or (path.exists() and not os.access(path, os.R_OK)):
        raise _NotPlainError
    return path


def _number(value: Any, kind: type, info: Any) -> Any:
    """A number within its bounds, from a number or its digits."""
    digits = _WHOLE if kind is int else _DECIMAL
    if not (type(value) is kind or (type(value) is str and digits.fullmatch(value))):
        raise _NotPlainError
    number = kind(value)
    if (info.min is not None and not number >= info.min) or (info.max is not None and not number <= info.max):
        raise _NotPlainError
    return number
