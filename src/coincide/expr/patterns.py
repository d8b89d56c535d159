"""Patterns of texts: `like`, and `matches` by regular expressions. Neither takes more than linear time in the text."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any


@lru_cache(maxsize=1024)
def _pieces(pattern: str) -> tuple[re.Pattern[str], ...]:
    """What stands between the `%`, each of a fixed length: `_` is any one character."""
    return tuple(re.compile("".join("." if c == "_" else re.escape(c) for c in piece), re.DOTALL) for piece in pattern.split("%"))


def like(text: str, pattern: str) -> bool:
    """`%` any text, `_` any one character; the whole text must match. Each piece is looked for once, behind the one before:
    where it is found first, the most is left for the others."""
    first, *middle = _pieces(pattern)
    if not middle:
        return first.fullmatch(text) is not None
    last = middle.pop()
    found = first.match(text)
    for piece in middle:
        found = found and piece.search(text, found.end())
    if found is None:
        return False
    rest = len(text) - (len(pattern) - pattern.rindex("%") - 1)  # where the last piece must begin
    return rest >= found.end() and last.match(text, rest) is not None


def matches(text: str, pattern: str) -> bool | None:
    """Is the regular expression found anywhere? Null if it is none."""
    compiled = _regular_expression(pattern)
    return None if isinstance(compiled, str) else compiled.search(_bytes(text)) is not None


def pattern_fault(pattern: str) -> str | None:
    """What is wrong with a regular expression."""
    compiled = _regular_expression(pattern)
    return f"no regular expression (of RE2): {compiled}" if isinstance(compiled, str) else None


@lru_cache(maxsize=1024)
def _regular_expression(pattern: str) -> Any:
    """By RE2, whose time is linear whatever the pattern; or what is wrong with it."""
    import re2

    options = re2.Options()
    options.log_errors = False
    options.never_capture = True  # nobody asks where the groups are
    try:
        return re2.compile(_bytes(pattern), options)
    except re2.error as error:
        (reason,) = error.args
        return reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)


def _bytes(text: str) -> bytes:
    """RE2 reads UTF-8; half a surrogate pair, which JSON may bring, is one character, too."""
    return text.encode("utf-8", "surrogatepass")
