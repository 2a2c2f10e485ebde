"""The classes of uvicorn that the servers override, each function as a digest: `python -m` this prints uvicorn.toml."""

import ast
import inspect
from hashlib import sha256
from pathlib import Path
from typing import Final

from streamgauge.servers.http import server

OVERRIDING: Final = (server.PatientHttpProtocol, server.PushingWebSocketProtocol, server.Serving)


def base(overriding: type) -> type:
    """The class of uvicorn that one of ours overrides."""
    return overriding.__bases__[0]


def functions(overriding: type) -> dict[str, tuple[str, list[str]]]:
    """Each function of uvicorn's class: its source and its parameters, as the file has them.

    Not those of the class itself: sse-starlette replaces one when it is imported.
    """
    source = Path(inspect.getfile(base(overriding))).read_text(encoding="utf-8")
    classes = (statement for statement in ast.parse(source).body if isinstance(statement, ast.ClassDef))
    (parsed,) = (statement for statement in classes if statement.name == base(overriding).__name__)
    parts = [part for part in parsed.body if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef)]
    return {
        part.name: (ast.get_source_segment(source, part) or "", [name.arg for name in part.args.args]) for part in parts
    }


def digests(overriding: type) -> dict[str, str]:
    """Each function of uvicorn's class with the digest of its source."""
    return {name: sha256(text.encode()).hexdigest()[:16] for name, (text, _) in functions(overriding).items()}


def overridden(overriding: type) -> list[str]:
    """The functions of uvicorn's class that ours has too."""
    return sorted(vars(overriding).keys() & digests(overriding).keys())


if __name__ == "__main__":
    print("# The functions of uvicorn's classes that the servers override, as digests of their source.")
    print("# Written by `python -m tests.servers.http.uvicorn_classes`, after the check that test_uvicorn.py asks for.")
    for overriding in OVERRIDING:
        print(f"\n[{base(overriding).__name__}]")
        print("\n".join(f'{name} = "{digest}"' for name, digest in digests(overriding).items()))
