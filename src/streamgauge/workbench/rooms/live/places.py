"""The sources that the workbench opens: files below its folder, and brokers at hosts that may be asked."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from os import walk
from pathlib import Path
from typing import Final
from urllib.parse import urlencode, urlsplit

from streamgauge.formats.streams import stream_formats
from streamgauge.sources import SourceError
from streamgauge.sources.contract import Address, parse_address
from streamgauge.workbench.addresses import Lookup, check_host, lookup

MESSAGE: Final = 2**20
"""Bytes that a line or message may have unless a source's option ``limit`` says otherwise."""

LONGEST: Final = 16 * 2**20
"""The most that it may say."""

_FILES: Final = ("csv_mapping", "ca")
"""Options that name files."""

_LOOKED_AT: Final = 2_000
_LISTED: Final = 40


@dataclass(frozen=True, slots=True)
class SourcePlaces:
    """The places of sources, for the workbench over ``folder``; ``find`` gives the addresses of a host."""

    folder: Path
    find: Lookup = lookup

    def url(self, text: str) -> str:
        """The URL to open for a source as it was typed; SourceError or HostRefusedError say why it is not opened."""
        address = parse_address(text.strip())
        if address.scheme == "-":
            raise SourceError("- is the standard input of the workbench: name a file of its folder, or a broker")
        options = self._options(address)
        if address.scheme == "file":
            return f"{self.inside(address.path.removeprefix('file:'))}?{urlencode(options)}"
        if not address.host:
            raise SourceError(f"{address.text}: names no machine: write {address.scheme}://HOST")
        for host in _hosts(address):
            check_host(host, self.find)
        return urlsplit(text.strip())._replace(query=urlencode(options)).geturl()

    def shown(self, url: str) -> str:
        """A source for people: a file as it lies in the folder, without the bound that was put to it."""
        address = url.removeprefix(f"{self.folder.resolve()}/")
        return address.replace(f"?limit={MESSAGE}", "").replace(f"&limit={MESSAGE}", "")

    def inside(self, path: str) -> Path:
        """A file or folder below the workbench's folder; SourceError for any other, symbolic links followed."""
        root = self.folder.resolve()
        found = (root / path).resolve()
        if "?" in str(found) or "\0" in path or not found.is_relative_to(root):
            raise SourceError(f"{path}: only files below the workbench's folder are read: copy or link nothing else")
        if not (found.is_file() or found.is_dir()):
            raise SourceError(f"{path}: there is no such file or folder in {self.folder.name or self.folder}")
        if found.is_dir() and (out := _leads_out(found, root)) is not None:
            raise SourceError(f"{path}: {out} leads out of the workbench's folder")
        return found

    def streams(self) -> list[str]:
        """Files of the folder that are streams by their names, relative to it, sorted; at most forty."""
        endings = tuple(ending for each in stream_formats().values() for ending in each.endings)
        seen = islice(_files(self.folder), _LOOKED_AT)
        named = [path for path in seen if path.name.removesuffix(".gz").endswith(endings)]
        return sorted(str(path.relative_to(self.folder)) for path in named)[:_LISTED]

    def _options(self, address: Address) -> dict[str, str]:
        """The options, files in them found below the folder, and a bound for the size of messages."""
        options = dict(address.options)
        for name in _FILES:
            if name in options:
                options[name] = str(self.inside(options[name]))
        limit = options.setdefault("limit", str(MESSAGE))
        if not limit.isascii() or not limit.isdigit() or not 0 < int(limit[:12]) <= LONGEST:
            raise SourceError(f"{address.text}: option limit is {limit:.20}: expected bytes, at most {LONGEST}")
        return options


def _hosts(address: Address) -> list[str]:
    """Every host that an address names."""
    more = address.options.get("brokers", "")
    return [address.host, *((each.rpartition(":")[0] or each).strip("[]") for each in more.split(",") if each)]


def _leads_out(folder: Path, root: Path) -> Path | None:
    """A file below a folder that lies elsewhere, through a symbolic link."""
    return next((path for path in _files(folder) if not path.resolve().is_relative_to(root)), None)


def _files(folder: Path) -> Iterator[Path]:
    for at, folders, files in walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (Path(at) / name for name in sorted(files))
