"""Accepted tokens of a server, from a file that is read again on SIGHUP; not in ``servers``, which clients import."""

from logging import getLogger
from pathlib import Path

from streamgauge.cli.servers import read_tokens, tell_readers
from streamgauge.servers.http.access import Tokens, check_tokens

_LOG = getLogger(__name__)


class TokenFile(Tokens):
    """The tokens of a file and of the environment, which ``reload`` reads again; TokenError, MistakeError."""

    def __init__(self, file: Path | None, host: str) -> None:
        self._file, self._host = file, host
        super().__init__(self._read())
        tell_readers(file)

    def reload(self) -> None:
        """Read the tokens again; if that fails, the previous ones remain."""
        self.replace(self._read())
        if self._file is not None:
            _LOG.info("tokens of %s read again", self._file)

    def _read(self) -> list[str]:
        tokens = read_tokens(self._file)
        check_tokens(self._host, tokens)
        return tokens
