"""`like` and `matches`: what they find, and that no pattern makes them slow."""

from __future__ import annotations

import re
import time
from itertools import product

import pytest

import coincide
from coincide.errors import RuleError
from coincide.expr.patterns import like, matches, pattern_fault


def test_like_means_what_a_regular_expression_of_it_would() -> None:
    texts = ["".join(t) for n in range(5) for t in product("ab", repeat=n)]
    for pattern in ("".join(p) for n in range(5) for p in product("ab%_", repeat=n)):
        form = re.compile("".join({"%": ".*", "_": "."}.get(c, c) for c in pattern), re.DOTALL)
        assert [t for t in texts if like(t, pattern)] == [t for t in texts if form.fullmatch(t)], pattern


@pytest.mark.parametrize(
    ("text", "pattern", "found"),
    [
        ("a\nb", "a%b", True),
        ("a\nb", "a_b", True),
        ("a.b", "a_b", True),
        ("axb", "a.b", False),
        ("😀", "_", True),
        ("", "%", True),
    ],
)
def test_like_of_odd_texts(text: str, pattern: str, found: bool) -> None:
    assert like(text, pattern) is found


def test_no_pattern_is_slow() -> None:
    text = "a" * 100_000
    begin = time.process_time()
    assert not like(text, "%a" * 30 + "%b")
    assert not like(text, "%a_" * 30 + "%b")
    assert matches(text, "(a*)*(a|aa)*b") is False
    assert matches(text, "(x+x+)+y") is False
    assert time.process_time() - begin < 1


@pytest.mark.parametrize(
    ("text", "pattern", "found"),
    [
        ("an ERROR 55", r"ERROR \d+", True), ("é", "^.$", True), ("\ud800", "^.$", True), ("É", "(?i)é", True),
        ("a\n", "a$", False),
        ("ab", "^(?:a|b)+$", True), ("", "", True), ("x", "(", None), ("x", r"(x)\1", None), ("x", "(?=x)", None),
    ],
)  # fmt: skip
def test_matches(text: str, pattern: str, found: bool | None) -> None:
    assert matches(text, pattern) is found
    assert (pattern_fault(pattern) is not None) == (found is None)


RULES = {
    "ecl": ("monitor m = push(m) { a and matches(s, '(x)\\1') }", "1:40"),
    "opera": ("detect X = [A(matches(s, '(?=x)'))]", "1:26"),
    "ecco": ("detect x = a { matches(s, '[') }", "1:27"),
}


@pytest.mark.parametrize("language", RULES)
def test_a_pattern_that_is_none_is_refused_with_its_place(language: str) -> None:
    text, place = RULES[language]
    with pytest.raises(RuleError, match=rf":{place}: error: 'matches': no regular expression \(of RE2\): "):
        coincide.loads(text, language)


def test_all_tiers_find_the_same() -> None:
    rules = coincide.loads(r"monitor m = repeat { push(m, s: s) { a and (matches(s, '^\w+ \d$') or s like 'x%y_%z') } }")
    texts = ["é 1", "e 1", "e ١", "xyyz", "x--y-z", "xy-", "x\ny\nz", "", "xz"]
    events = [{"type": "a", "time": n, "s": s} for n, s in enumerate(texts * 4)]
    found = [[d["s"] for d in coincide.detect(rules, events, tier=tier)] for tier in ("interpreter", "kernel")]
    assert found[0] == found[1] == ["e 1", "xyyz", "x--y-z", "x\ny\nz"] * 4
