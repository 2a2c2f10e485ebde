"""A cursor over the tokens of a query: terms, and the errors about unexpected tokens."""

import re
from collections.abc import Sequence
from typing import Final, NoReturn

from streamgauge.model.algebra import Var
from streamgauge.model.phrases import meant
from streamgauge.model.terms import XSD, Term
from streamgauge.query.prologue import Prologue
from streamgauge.query.text import CLOSING, EVENT_SEQUENCES, QueryError, Token, UnansweredError
from streamgauge.query.versions import LATER_SIGNS, is_earlier

_OPERATORS: Final = re.compile(r"&&|[=!?$(]")
_TRUTH: Final = ("TRUE", "FALSE")
_LONGEST_SHOWN: Final = 40
MAX_WEIGHT: Final = 216
"""Maximum weight of operators, group elements and brackets that are open at once, nested or chained.

It bounds the height of the query's tree, in which ``a || b || c`` is as high as it is long: comparing two trees
recursively takes four of CPython's 1,000 nested calls per level.
"""
_LOOSE_STRING: Final = re.compile(r'"(?!"")(?:[^"\\\n\r]|\\.)*"|' + r"'(?!'')(?:[^'\\\n\r]|\\.)*'")
"""A string with any escapes, also invalid ones."""
_KEYWORDS: Final = (
    *("SELECT", "CONSTRUCT", "ASK", "DESCRIBE", "WHERE", "FROM", "NAMED", "DISTINCT", "REDUCED", "PREFIX", "BASE"),
    *("OPTIONAL", "UNION", "MINUS", "FILTER", "EXISTS", "GRAPH", "BIND", "VALUES", "SERVICE", "UNDEF", "SEPARATOR"),
    *("GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "VERSION", "WINDOW", "STREAM"),
    *("INSERT", "DELETE", "DATA", "WITH", "USING"),
)


class Cursor:
    """A position in the tokens of a text, from the end of its prologue on, and readers of terms."""

    _kind = "query"

    def __init__(self, text: str, words: Sequence[Token], prologue: Prologue) -> None:
        self._text, self._words, self._prologue, self._at = text, words, prologue, prologue.end
        self._end = Token("sign", "", len(text))
        self._unanswered: UnansweredError | None = None
        self._earlier = is_earlier(prologue.version)
        self._weight = 0

    @property
    def _token(self) -> Token:
        try:
            # Tokens are read far more often than they end, so an exception at the end is cheaper than a comparison
            # before each.
            return self._words[self._at]
        except IndexError:
            return self._end

    def _refuse(self, what: str, token: Token | None = None) -> NoReturn:
        """Raise QueryError at a token, by default the next one."""
        raise QueryError(what, self._text, (token or self._token).start)

    def _check_version(self, what: str, token: Token) -> None:
        """Raise QueryError at a feature that the announced version of SPARQL lacks."""
        if self._earlier:
            version = self._prologue.version
            self._refuse(f'{what} is SPARQL 1.2, but the text declares VERSION "{version}": declare "1.2"', token)

    def _weigh(self, more: int = 1) -> None:
        """Add to the weight of the tree (1 for an operator, 2 for a group element); QueryError above MAX_WEIGHT."""
        self._weight += more
        if self._weight > MAX_WEIGHT:
            what = "nested or chained brackets, operators and patterns: write shorter chains"
            self._refuse(f"more than {MAX_WEIGHT} {what}")

    def _leave_unanswered(self, what: str, token: Token) -> None:
        """Record a part of SPARQL that is parsed but not supported; the first one is reported."""
        self._unanswered = self._unanswered or UnansweredError(what, self._text, token.start)

    def _expect(self, what: str) -> NoReturn:
        """Raise QueryError at the next token, saying what is expected instead."""
        token = self._token
        if hint := self._known_mistake(token):
            self._refuse(hint, token)
        # An error at a bracket or at the end mostly comes from another bracket, far above.
        if token.text in CLOSING.values() or not token.text:
            self._check_brackets()
        if not token.text:
            self._refuse(f"the {self._kind} ends here, but {what} is expected")
        shown = token.text if len(token.text) <= _LONGEST_SHOWN else f"{token.text[:_LONGEST_SHOWN]}..."
        word = token.text.upper()
        near = meant(word, _KEYWORDS) if token.kind == "word" and word not in _KEYWORDS else ""
        self._refuse(f"{what} is expected here, not {shown}{near}")

    def _known_mistake(self, token: Token) -> str | None:
        """The message for a token that is a frequent mistake, else ``None``."""
        following = self._text[token.end : token.end + 1]
        # ``?a<?b&&?c>?d`` contains a valid IRI reference, ``<?b&&?c>``.
        if token.kind == "iri" and _OPERATORS.search(token.text):
            return f"{token.text} is read as an IRI: write a space after < to compare"
        if token.text == "<" and following.strip():
            shown = re.split(r"[>\n\r]", self._text[token.start :], maxsplit=1)[0][:_LONGEST_SHOWN]
            return f"{shown}> is not an IRI: spaces, quotes and braces are not allowed in IRIs; write a space as %20"
        if token.text in ('"', "'"):
            if _LOOSE_STRING.match(self._text, token.start):
                return "this string has an invalid escape: write \\\\ for a backslash"
            return "this string is not closed: add its quote, or write three quotes around several lines"
        if token.text == "\\" and following in ("u", "U"):
            return "escapes like \\u0041 are for strings and IRIs only (SPARQL 1.2, 19.2): write the character itself"
        if token.text == "$" and following == "{":
            return "a parameter ${...} has no value: fill it first"
        if token.says("LATERAL"):
            return "LATERAL is not SPARQL: write a subquery"
        if token.says(*EVENT_SEQUENCES):
            return sequence_refusal(token)
        if token.text and token.text not in "\"'" and not token.text.isprintable():
            return f"{token.text!a} is not allowed here: only spaces, tabs and line ends separate words"
        return None

    def _check_brackets(self) -> None:
        """Raise QueryError at a bracket that is not closed, or closes none."""
        opened: list[Token] = []
        for token in self._words:
            if token.kind != "sign":
                continue
            if token.text in CLOSING:
                opened.append(token)
            elif token.text in CLOSING.values() and (not opened or CLOSING[opened.pop().text] != token.text):
                self._refuse(f"this {token.text} has no opening bracket", token)
        if opened:
            # The innermost one: adding its partner is the smallest change that makes the brackets match.
            last = opened[-1]
            before = self._text[: last.start]
            place = f"line {before.count(chr(10)) + 1}, column {last.start - before.rfind(chr(10))}"
            self._refuse(f"the {last.text} at {place} is not closed: add {CLOSING[last.text]}", self._end)

    def _take(self) -> Token:
        token = self._token
        self._at += 1
        return token

    def _is(self, *signs: str) -> bool:
        """Whether the next token is one of these signs."""
        token = self._token
        return token.kind == "sign" and token.text in signs

    def _skip(self, sign: str) -> bool:
        """Step over a sign if it is next; whether it was."""
        if self._token.text == sign:
            if sign in LATER_SIGNS:
                self._check_version(sign, self._token)
            self._at += 1
            return True
        return False

    def _must(self, sign: str) -> None:
        if not self._skip(sign):
            self._expect(sign)

    def _word(self) -> str:
        """The next token in upper case if it is a word, else an empty string."""
        token = self._token
        return token.text.upper() if token.kind == "word" else ""

    def _says(self, *words: str) -> bool:
        """Step over the next token if it is one of these keywords; whether it was."""
        if self._word() in words:
            self._at += 1
            return True
        return False

    def _must_say(self, *words: str) -> None:
        if not self._says(*words):
            self._expect(" or ".join(words))

    def _variable(self) -> Var:
        if self._token.kind != "variable":
            self._expect("a variable like ?x")
        return Var(self._take().text[1:])

    def _iri(self) -> Term:
        if self._token.kind not in ("iri", "name"):
            self._expect("an IRI or a prefixed name")
        return f"<{self._prologue.iri(self._take())}>"

    def _is_signed_number(self) -> bool:
        """Whether the next token is the sign of a number without space, as in ``-5``."""
        if self._token.text not in ("+", "-") or self._at + 1 >= len(self._words):
            return False
        following = self._words[self._at + 1]
        # The tokens have no signed numbers, as ``?x -5`` is a subtraction and ``(-5)`` a number.
        return following.kind == "number" and following.start == self._token.end

    def _begins_literal(self) -> bool:
        return self._token.kind in ("string", "number") or self._word() in _TRUTH or self._is_signed_number()

    def _begins_term(self) -> bool:
        """Whether the next token begins an IRI or a literal."""
        return self._token.kind in ("iri", "name") or self._begins_literal()

    def _literal(self) -> list[Token]:
        """The tokens of a string with its language tag, or with ^^ and its datatype."""
        parts = [self._take()]
        if self._token.kind == "language":
            if "--" in self._token.text:
                self._check_version("a base direction", self._token)
            return [*parts, self._take()]
        if not self._is("^^"):
            return parts
        parts.append(self._take())
        if self._token.kind not in ("iri", "name"):
            self._expect("the IRI of a datatype")
        return [*parts, self._take()]

    def _term(self, what: str = "a term") -> Term:
        """An IRI or a literal as a term."""
        if self._token.kind in ("iri", "name"):
            return self._iri()
        if not self._begins_literal():
            self._expect(what)
        if self._word() in _TRUTH:
            return f'"{self._take().text.lower()}"^^<{XSD}boolean>'
        if self._token.kind == "string":
            return self._prologue.literal(self._literal())
        sign = self._take().text if self._token.kind != "number" else ""
        number = self._take().text
        # SPARQL 1.1, 19.8: an exponent makes a DOUBLE, a dot without one a DECIMAL, digits alone an INTEGER.
        kind = "double" if "e" in number.lower() else "decimal" if "." in number else "integer"
        return f'"{sign}{number}"^^<{XSD}{kind}>'


def sequence_refusal(token: Token) -> str:
    """The message for an operator or function of EP-SPARQL (Anicic et al., WWW 2011)."""
    return f"{token.text} is EP-SPARQL's: sequences of events are not supported; compare timestamp() of triples"
