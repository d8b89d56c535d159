"""Going over the tokens of a text, and saying what each name is by what stands around it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from coincide.editing.lexing import COMMENT
from coincide.editing.marks import ATTRIBUTE, EVENT, FUNCTION, KEYWORD, NUMBER, OPERATOR, TEXT, Mark
from coincide.expr.parse import COMPARISONS
from coincide.expr.quantities import UNITS
from coincide.expr.tokens import EXPRESSION_KEYWORDS, Token, name_of

OPENING, CLOSING = {"(": ")", "[": "]", "{": "}", "![": "]", "{-": "-}"}, frozenset((")", "]", "}", "-}"))
PLAIN = {"number": NUMBER, "op": OPERATOR, "text": TEXT, "raw": TEXT, "open": TEXT, COMMENT: COMMENT}
VALUE_SIGNS = frozenset({*COMPARISONS, "+", "-", "*", "/", "%"})
TESTS = ("in", "between", "like", "is")
END = Token("end", "", 0, 0)

Role = tuple[str, bool, str]
"""Kind, whether it is defined here, scope."""


def role(kind: str, defines: bool = False, scope: str = "") -> Role:
    return kind, defines, scope


class Walk:
    """The tokens of a text with the brackets and statements that they stand in. A language says what its names are (`role`)."""

    keywords: Collection[str] = EXPRESSION_KEYWORDS
    spaced_calls = False

    def __init__(self, tokens: Sequence[Token]) -> None:
        self.everything = tokens
        self.tokens = [token for token in tokens if token.kind not in (COMMENT, "bad")]
        self.owners = list(_owners(self.tokens))
        self.statements = self._statements()

    # What a language says.

    def role(self, at: int) -> Role | None:
        """What the name at this place is; None: what names in expressions are."""
        raise NotImplementedError

    def starts(self, at: int) -> bool:
        """Does a statement begin here?"""
        return at == 0

    def is_keyword(self, at: int) -> bool:
        token = self.tokens[at]
        return token.kind == "name" and (token.text in self.keywords or (token.text.isupper() and self.word(at) in self.keywords))

    def aliases(self, at: int) -> Mapping[str, Role]:
        """What may stand before the dot of a reference at this place."""
        return {}

    # What stands where. Beyond the ends there is nothing.

    def token(self, at: int) -> Token:
        return self.tokens[at] if 0 <= at < len(self.tokens) else END

    def text(self, at: int) -> str:
        """Of a word or a sign; quoted ones say nothing."""
        token = self.token(at)
        return token.text if token.kind in ("name", "op", "field") else ""

    def word(self, at: int) -> str:
        return self.text(at).lower()

    def named(self, at: int) -> str:
        return self.token(at).named.text

    def is_name(self, at: int) -> bool:
        return self.token(at).is_name and not self.is_keyword(at)

    def owner(self, at: int) -> int:
        """The bracket that it stands in, -1 if none."""
        return self.owners[at] if 0 <= at < len(self.owners) else -1

    def first(self, at: int) -> int:
        """Where the statement begins."""
        return self.statements[at]

    def scope(self, at: int) -> str:
        """Of names that belong to the statement."""
        return f"statement {self.statements[at]}"

    def until(self, at: int) -> int:
        """Behind the last token of the statement."""
        first, end = self.statements[at], at
        while end < len(self.tokens) and self.statements[end] == first:
            end += 1
        return end

    def _statements(self) -> list[int]:
        found, first = [], 0
        for at in range(len(self.tokens)):
            first = at if self.starts(at) else first
            found.append(first)
        return found

    # Marks.

    def marks(self) -> Iterator[Mark]:
        for at, token in enumerate(self.tokens):
            if self.is_keyword(at):
                yield Mark(token.start, token.end, KEYWORD)
            elif token.is_name:
                yield from self._named(at, token)
        for token in self.everything:
            if token.kind in PLAIN:
                yield Mark(token.start, token.end, PLAIN[token.kind])

    def _named(self, at: int, token: Token) -> Iterator[Mark]:
        if self.is_unit(at):
            yield Mark(token.start, token.end, NUMBER)
            return
        found = self.role(at)
        if found is None:
            yield from self._reference(at, token)
        elif found[0] in (KEYWORD, FUNCTION):
            yield Mark(token.start, token.end, found[0])
        else:
            yield Mark(token.start, token.end, found[0], self.named(at), *found[1:])

    def is_unit(self, at: int) -> bool:
        return self.token(at - 1).kind == "number" and self.text(at) in UNITS

    # Expressions.

    def is_call(self, at: int) -> bool:
        return self.text(at + 1) == "(" and (self.spaced_calls or self.token(at + 1).start == self.token(at).end)

    def _reference(self, at: int, token: Token) -> Iterator[Mark]:
        """A function, or an attribute, perhaps behind an alias and a dot."""
        if self.is_call(at) and token.kind == "name":
            yield Mark(token.start, token.end, FUNCTION)
            return
        name, splits = name_of(token.text)
        known = self.aliases(at)
        splits = splits if token.kind == "quoted" else tuple(n for n, c in enumerate(name) if c == ".")
        split = next((n for n in reversed(splits) if name[:n] in known), None)
        if split is None:
            kind, defines, scope = known.get(name, role(ATTRIBUTE))
            yield Mark(token.start, token.end, kind, "" if kind == KEYWORD else name, defines, scope)
            return
        dot = token.start + (split if token.kind == "name" else token.text.index(".", split))
        kind, _, scope = known[name[:split]]
        yield Mark(token.start, dot, kind, "" if kind == KEYWORD else name[:split], False, scope)
        yield Mark(dot + 1, token.end, ATTRIBUTE, name[split + 1 :])

    def is_value(self, at: int, looking_back: bool = True) -> bool:
        """Is the name at this place a value, not something that is true or false by itself?"""
        before, after = self.word(at - 1) if looking_back else "", self.word(at + 1)
        if before in VALUE_SIGNS or after in VALUE_SIGNS or before in ("between", "like") or after in TESTS:
            return True
        if after == "not" and self.word(at + 2) in TESTS:
            return True
        if before == "and" and self.word(at - 3) == "between":
            return True
        owner = self.owner(at)
        return owner > 0 and self.text(owner) == "(" and (self.is_name(owner - 1) or self._lists_values(owner))

    def _lists_values(self, bracket: int) -> bool:
        """`x in (…)`."""
        return self.word(bracket - 1) == "in" and (self.token(bracket - 2).is_name or self.text(bracket - 2) == ")")

    def types(self) -> Iterator[Mark]:
        """Types of events that conditions name in quotes: `type = 'open'`, `type in ('open', 'close')`."""
        for at in range(len(self.tokens)):
            if self.word(at) != "type":
                continue
            if self.text(at + 1) in ("=", "==", "!=", "<>"):
                yield from self._quoted_type(at + 2)
            listed = at + 1 + (self.word(at + 1) == "not")
            if self.word(listed) == "in" and self.text(listed + 1) == "(":
                for inner in range(listed + 2, len(self.tokens)):
                    if self.text(inner) == ")":
                        break
                    yield from self._quoted_type(inner)

    def _quoted_type(self, at: int) -> Iterator[Mark]:
        token = self.token(at)
        if token.kind == "text" and len(token.text) > 2:
            yield Mark(token.start + 1, token.end - 1, EVENT, token.value)


def _owners(tokens: Sequence[Token]) -> Iterator[int]:
    """For each token the place of the bracket that it stands in; brackets stand where their owner does."""
    stack: list[int] = []
    for at, token in enumerate(tokens):
        if token.kind == "op" and token.text in CLOSING and stack:
            stack.pop()
        yield stack[-1] if stack else -1
        if token.kind == "op" and token.text in OPENING:
            stack.append(at)
