"""Which sets of predicates an event can satisfy (ecl.md, section 7)."""

from __future__ import annotations

import math

import pytest

from coincide.analysis.domain import atom, membership
from coincide.analysis.letters import LIMIT, LimitExceeded, alphabet
from coincide.expr.parse import parse_expression
from coincide.expr.scalar import EventScope, compile_scalar
from coincide.model.event import Value, primitive


def letters(*tests: str, keys: tuple[str, ...] = ()) -> list[list[str]]:
    found = alphabet([parse_expression(test) for test in tests], keys).letters
    return sorted([test for i, test in enumerate(tests) if letter >> i & 1] for letter in found)


def count(*tests: str, keys: tuple[str, ...] = ()) -> int:
    return len(letters(*tests, keys=keys))


def exact(test: str, keys: tuple[str, ...] = ()) -> bool:
    return alphabet([parse_expression(test)], keys).exact


def test_one_event_has_one_type() -> None:
    assert letters("type = 'a'", "type = 'b'") == [[], ["type = 'a'"], ["type = 'b'"]]


def test_thresholds_imply_one_another() -> None:
    assert letters("v > 5", "v > 10") == [[], ["v > 5"], ["v > 5", "v > 10"]]


@pytest.mark.parametrize(
    ("tests", "number"),
    [
        ((), 1),
        (("true",), 1),
        (("false",), 1),
        (("null",), 1),
        (("5",), 1),
        (("v > 5 and v < 3",), 1),
        (("v > 1 or not v > 1",), 2),  # null
        (("time > 1 or not time > 1",), 1),  # never null
        (("type is null",), 1),
        (("source is null",), 2),
        (("id is null",), 2),
        (("time is null",), 1),
        (("v = 1", "v = true"), 3),
        (("v in (true, 1)", "v = 1", "v = true"), 3),
        (("v in (1, 2)", "v = 2"), 3),
        (("v not in (1, 2)", "v in (1, 2)"), 3),
        (("v between 1 and 2", "v not between 1 and 2"), 3),
        (("5 < v", "v > 5"), 2),
        (("v = null",), 1),
        (("v is null", "v is not null"), 2),
        (("v > 1e17 and v <= 1e17",), 1),
        (("v > 1e17",), 2),
        (("v > 1 and v < 1.0000000000000002",), 1),  # neighbours among the doubles
        (("v > 1 and v < 1.0000000000000004",), 2),
        (("v > 1.7976931348623157e308",), 1),  # the largest double
        (("v < ''",), 1),  # no text is smaller than the empty one
        (("v > 'a' and v < 'b'",), 2),
        (("type > ''", "type = ''"), 2),
        (("type > 1",), 1),
        (("type < 'a' or type >= 'a'",), 1),
        (("v = 'a' and w = 1", "v = 'a'", "w = 1"), 4),
    ],
)
def test_number_of_letters(tests: tuple[str, ...], number: int) -> None:
    assert count(*tests) == number


def test_a_key_is_never_null() -> None:
    assert count("k is null", keys=("k",)) == 1
    assert count("k is null") == 2
    assert count("k is not null", keys=("k",)) == 1
    assert count("source is null", keys=("source",)) == 1


def test_opaque_atoms_are_anything() -> None:
    assert count("v > w", "not v > w") == 3
    assert count("v > w and not v > w") == 1
    assert count("v > w and not w < v") == 2  # another atom
    assert count("v = v") == 2
    assert count("v like 'a%'", "v not like 'a%'") == 4  # two atoms
    assert count("v > 1", "v + 0 > 1") == 4
    assert count("w = 1", "w = true or x > y", "x > y") == count("w = 1", "w = true", "x > y") - 1


@pytest.mark.parametrize("test", ["v > w", "v like 'a'", "v + 1 > 2", "abs(v) > 1", "v = v", "time > 1", "id = '1'", "1 = 1"])
def test_not_exact(test: str) -> None:
    assert not exact(test)
    assert not exact(f"type = 'a' and ({test} or v > 1)")


@pytest.mark.parametrize("test", ["v > 1", "true", "source = 'x'", "type in ('a', 'b')", "not v is null", "1 < v"])
def test_exact(test: str) -> None:
    assert exact(test)


def test_a_test_of_a_key_is_not_exact() -> None:
    assert exact("k = 1")
    assert not exact("k = 1", keys=("k",))
    assert not exact("source = 'a'", keys=("source",))


def test_as_many_letters_as_the_limit_allows() -> None:
    assert count(*(f"v{i} = 1" for i in range(12))) == LIMIT
    with pytest.raises(LimitExceeded):
        count(*(f"v{i} = 1" for i in range(13)))


@pytest.mark.parametrize(
    ("tests", "number"),
    [
        ([f"type = 'a{i}'" for i in range(1000)], 1001),
        ([f"v > {i}" for i in range(1000)], 1001),
        ([f"v > {i} and type = 'a{i}'" for i in range(1000)], 1001),
        ([f"type in ({', '.join(repr(f'a{i}') for i in range(1000))})"], 2),
        ([" or ".join(f"(x{i} > 1 and y{i} = 1)" for i in range(20))], 2),
        ([" and ".join(f"(x{i} > 1 or x{i + 1} = 1)" for i in range(20))], 2),
        ([f"x > {i} and y < {i} or z = {i}" for i in range(12)], 464),
    ],
)
def test_the_product_of_all_values_is_not_formed(tests: list[str], number: int) -> None:
    assert count(*tests) == number


def test_too_many_letters_are_noticed_early() -> None:
    with pytest.raises(LimitExceeded):
        count(*(f"v{i} > 1" for i in range(400)))
    with pytest.raises(LimitExceeded):
        count(*(f"type = 'a' and v{i} > 1" for i in range(150)))


VALUES: list[Value] = [None, True, False, 0.0, 1.0, 2.0, "", "a", "1"]


@pytest.mark.parametrize("options", ["1", "1, 2", "'a'", "1, 'a'", "true, 1", "null", "1, null"])
@pytest.mark.parametrize("negated", [False, True])
def test_membership_is_that_of_expressions(options: str, negated: bool) -> None:
    tree = parse_expression(f"v {'not ' * negated}in ({options})")
    quick = membership(atom(tree).constants, negated)
    slow = compile_scalar(tree, EventScope())
    for value in VALUES:
        assert quick(value) is slow(primitive("t", 0, 0, "1", {"v": value})), value


def test_neighbours_are_doubles() -> None:
    above = math.nextafter(1.0, 2.0)
    assert count("v = 1", f"v = {above!r}", "v > 1") == 4
