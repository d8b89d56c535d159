"""Patterns of texts: `like`, and `matches` by regular expressions. Neither takes more than linear time in the text."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any


@lru_cache(maxsize=4096)
def _pieces(pattern: str, many: str, one: str) -> tuple[re.Pattern[str], ...]:
    """What stands between the wildcards for any text, each of a fixed length."""
    pieces = ("".join("." if c == one else re.escape(c) for c in piece) for piece in pattern.split(many))
    return tuple(re.compile(piece, re.DOTALL) for piece in pieces)


def like(text: str, pattern: str, many: str = "%", one: str = "_") -> bool:
    """`many` stands for any text, `one` for any one character; the whole text must match. Each piece is looked for once, behind
    the one before: where it is found first, the most is left for the others."""
    first, *middle = _pieces(pattern, many, one)
    if not middle:
        return first.fullmatch(text) is not None
    last = middle.pop()
    found = first.match(text)
    for piece in middle:
        found = found and piece.search(text, found.end())
    if found is None:
        return False
    rest = len(text) - (len(pattern) - pattern.rindex(many) - 1)  # where the last piece must begin
    return rest >= found.end() and last.match(text, rest) is not None


def matches(text: str, pattern: str) -> bool | None:
    """Is the regular expression found anywhere? Null if it is none."""
    compiled = _regular_expression(pattern)
    return None if isinstance(compiled, str) else compiled.search(_bytes(text)) is not None


def searcher(pattern: str) -> Callable[[str], bool]:
    """The same as a function, for a pattern that many texts are tried with."""
    compiled = _regular_expression(pattern)
    return lambda text: not isinstance(compiled, str) and compiled.search(_bytes(text)) is not None


def captured(text: str, pattern: str) -> str | None:
    """What the first group takes part with where the expression is found first; the whole of it, if it has no groups."""
    compiled = _regular_expression(pattern, groups=True)
    found = None if isinstance(compiled, str) else compiled.search(_bytes(text))
    if found is None:
        return None
    part = found.group(1 if compiled.groups else 0)
    return None if part is None else str(part.decode("utf-8", "surrogatepass"))


def pattern_fault(pattern: str) -> str | None:
    """What is wrong with a regular expression."""
    reason = regular_expression_fault(pattern)
    return None if reason is None else f"no regular expression (of RE2): {reason}"


def regular_expression_fault(pattern: str) -> str | None:
    compiled = _regular_expression(pattern)
    return compiled if isinstance(compiled, str) else None


def matches_whole(text: str, pattern: str, any_case: bool) -> bool | None:
    """Does the regular expression match all of the text, newlines too? Null if it is none."""
    compiled = _regular_expression(pattern, True, any_case)
    return None if isinstance(compiled, str) else compiled.fullmatch(_bytes(text)) is not None


def lowered(text: str) -> str:
    """Every character by itself, by Unicode's simple mapping: the length stays."""
    return text.lower() if text.isascii() else "".join([c.lower()[0] for c in text])


@lru_cache(maxsize=1024)
def _regular_expression(pattern: str, newlines: bool = False, any_case: bool = False, groups: bool = False) -> Any:
    """By RE2, whose time is linear whatever the pattern; or what is wrong with it."""
    import re2

    options = re2.Options()
    options.log_errors = False
    options.dot_nl = newlines
    options.case_sensitive = not any_case
    options.never_capture = not groups  # as a rule nobody asks where they are
    try:
        return re2.compile(_bytes(pattern), options)
    except re2.error as error:
        (reason,) = error.args
        return reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)


def _bytes(text: str) -> bytes:
    """RE2 reads UTF-8; half a surrogate pair, which JSON may bring, is one character, too."""
    return text.encode("utf-8", "surrogatepass")
