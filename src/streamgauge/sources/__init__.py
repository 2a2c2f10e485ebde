"""Sources of streams and sinks of answers, one module per transport.

Every module here with ``SCHEMES`` adds its transports, with ``open_source(address, reading, form)``,
``open_sink(address)`` or both. Adding one edits no other file; another package names its module in the entry point
group ``streamgauge.sources``.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import MappingProxyType, ModuleType

from streamgauge.formats.places import exists
from streamgauge.formats.streams import FormatError, Reading
from streamgauge.model.announced import entry_points
from streamgauge.model.phrases import offered
from streamgauge.sources.contract import Address, Delivery, Position, Sink, Source, SourceError, parse_address

__all__ = [
    "Delivery",
    "Sink",
    "Source",
    "SourceError",
    "check_place",
    "message_form",
    "open_sink",
    "open_source",
    "schemes",
]


def open_source(
    url: str, reading: Reading | None = None, form: str | None = None, after: Position | None = None
) -> Source:
    """The stream at a URL: a path, ``-``, ``mqtt://host/topic``, ``kafka://host/topic``, ``sse+http://host/path``, ...

    ``reading`` and ``form`` (a stream format's name) are defaults for the URL's own options; ``after`` is the
    position of an earlier process. SourceError.
    """
    address = parse_address(url)
    try:
        transport = _transport(address, "open_source")
        if after is not None:
            resumed: Source = transport.resume_source(address, reading, form, after)
            return resumed
        source: Source = transport.open_source(address, reading, form)
    except FormatError as error:
        raise SourceError(str(error)) from error
    return source


def check_place(url: str) -> None:
    """SourceError for a URL that cannot be a source: an unknown scheme, no host, or a path that does not exist."""
    address = parse_address(url)
    if address.scheme == "file" and not exists(address.path):
        raise SourceError(f"{url}: there is no such file or folder, and a URL begins with its scheme (mqtt://...)")
    _transport(address, "open_source")
    # A transport reports this too, but only when it opens; a configuration must be refused before that.
    if address.scheme not in ("file", "-") and not address.host:
        raise SourceError(f"{address.text}: the host is missing: write {address.scheme}://HOST")


def open_sink(url: str, listening: Mapping[str, Callable[[Address], Sink]] = MappingProxyType({})) -> Sink:
    """The sink at a URL of the same form as for sources; SourceError.

    ``listening`` opens sinks of schemes that are servers (``streamgauge.servers.sinks``).
    """
    address = parse_address(url)
    if address.scheme in listening:
        return listening[address.scheme](address)
    sink: Sink = _transport(address, "open_sink", listening).open_sink(address)
    return sink


def message_form(url: str) -> str:
    """The message format of the sink at a URL: its transport's ``FORM``, else JSON lines."""
    # An unknown scheme is not refused here: ``open_sink`` does that, with the list of schemes.
    return getattr(schemes().get(parse_address(url).scheme), "FORM", "jsonl")


# Once per process, as the scan imports every transport. Optional client libraries are imported by the first source or
# sink that needs them, so the scan works without them.
@cache
def schemes() -> dict[str, ModuleType]:
    """Every URL scheme with its transport's module, sorted."""
    names = [f"{__name__}.{module.name}" for module in iter_modules(__path__)]
    modules = map(import_module, [*names, *(point.value for point in entry_points(group=__name__))])
    modules_by_scheme = {scheme: module for module in modules for scheme in getattr(module, "SCHEMES", ())}
    return dict(sorted(modules_by_scheme.items()))


def _transport(address: Address, ability: str, others: Iterable[str] = ()) -> ModuleType:
    able = [scheme for scheme, module in schemes().items() if hasattr(module, ability)]
    if address.scheme not in able:
        what = "read from" if ability == "open_source" else "written to"
        known = sorted([*able, *others])
        raise SourceError(
            f"{address.text}: streams cannot be {what} {address.scheme!r}: {offered(address.scheme, known)}"
        )
    return schemes()[address.scheme]
