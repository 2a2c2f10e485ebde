"""The classes of uvicorn that the servers override, each function as a digest: `python -m` this prints uvicorn.toml."""

import inspect
from hashlib import sha256
from typing import Final

from streamgauge.servers.http import server

OVERRIDING: Final = (server.PatientHttpProtocol, server.PushingWebSocketProtocol, server.Serving)


def base(overriding: type) -> type:
    """The class of uvicorn that one of ours overrides."""
    return overriding.__bases__[0]


def digests(overriding: type) -> dict[str, str]:
    """Each function of uvicorn's class with the digest of its source."""
    functions = {name: value for name, value in vars(base(overriding)).items() if inspect.isfunction(value)}
    return {name: sha256(inspect.getsource(value).encode()).hexdigest()[:16] for name, value in functions.items()}


def overridden(overriding: type) -> list[str]:
    """The functions of uvicorn's class that ours has too."""
    return sorted(vars(overriding).keys() & digests(overriding).keys())


if __name__ == "__main__":
    print("# The functions of uvicorn's classes that the servers override, as digests of their source.")
    print("# Written by `python -m tests.servers.http.uvicorn_classes`, after the check that test_uvicorn.py asks for.")
    for overriding in OVERRIDING:
        print(f"\n[{base(overriding).__name__}]")
        print("\n".join(f'{name} = "{digest}"' for name, digest in digests(overriding).items()))
