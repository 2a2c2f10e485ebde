"""Terms by short numbers and back; a number is never given to another term."""

from collections.abc import Iterable
from hashlib import sha256
from typing import Final

from streamgauge.model.terms import Term
from streamgauge.servers.fragments.quads import Quad
from streamgauge.servers.fragments.storing.shelf import Shelf, Writes

WIDTH: Final = 5
"""Bytes of a number: 100 new terms a second for 300 years."""

_TEXT, _NUMBER, _NEXT = b"t", b"n", b"m:terms"
_LONGEST = 400
_REMEMBERED = 200_000


class Terms:
    """The dictionary on a shelf, with a bounded memory of what was asked."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._numbers: dict[Term, bytes] = {}
        self.texts: dict[bytes, Term] = _Texts(shelf)
        """The term of a number that was given."""

    def number(self, term: Term) -> bytes | None:
        """The number of a term; ``None`` when it has none."""
        number = self._numbers.get(term)
        if number is None:
            number = self._shelf.get(_key(term))
            if number is not None:
                self._remember(term, number)
        return number

    def key(self, quad: Quad) -> bytes | None:
        """The numbers of a quad's terms, one after the other; ``None`` when a term has none."""
        numbers = [self.number(term) for term in quad]
        return None if None in numbers else b"".join(number for number in numbers if number is not None)

    def give(self, terms: Iterable[Term]) -> tuple[dict[Term, bytes], dict[bytes, bytes | None]]:
        """Numbers for terms, and what is to be written for those that had none."""
        numbers: dict[Term, bytes] = {}
        writes: dict[bytes, bytes | None] = {}
        following = int.from_bytes(self._shelf.get(_NEXT) or b"")
        for term in dict.fromkeys(terms):
            number = self.number(term)
            if number is None:
                number = following.to_bytes(WIDTH)
                following += 1
                writes |= {_TEXT + number: term.encode(), _key(term): number, _NEXT: following.to_bytes(8)}
            numbers[term] = number
        return numbers, writes

    @staticmethod
    def given(writes: Writes) -> list[bytes]:
        """The numbers that ``give`` gave to terms that had none, by what is to be written for them."""
        return [key[1:] for key in writes if key[:1] == _TEXT]

    def drop(self, numbers: Iterable[bytes]) -> Writes:
        """What is to be written so that terms have no number any more."""
        return {key: None for number in numbers for key in (_TEXT + number, _key(self.texts[number]))}

    def has(self, number: bytes) -> bool:
        """Whether a number is a term's."""
        return number in self.texts or self._shelf.get(_TEXT + number) is not None

    def forget(self, numbers: Iterable[bytes]) -> None:
        """Hold no more what was dropped, once that is shown."""
        for number in numbers:
            self._numbers.pop(self.texts.pop(number, ""), None)

    def _remember(self, term: Term, number: bytes) -> None:
        if len(self._numbers) >= _REMEMBERED:
            self._numbers.clear()
        self._numbers[term] = number


class _Texts(dict[bytes, Term]):
    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf

    def __missing__(self, number: bytes) -> Term:
        text = self._shelf.get(_TEXT + number)
        if text is None:
            raise self._shelf.lost(_TEXT + number)
        if len(self) >= _REMEMBERED:
            self.clear()
        try:
            term = self[number] = text.decode()
        except UnicodeDecodeError:
            raise self._shelf.lost(_TEXT + number) from None
        return term


def _key(term: Term) -> bytes:
    """What a term is found by: itself, or its digest when it is too long for a key."""
    text = term.encode()
    return _NUMBER + (b"=" + text if len(text) <= _LONGEST else b"#" + sha256(text).digest())
