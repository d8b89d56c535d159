"""Random ECL for property tests (needs hypothesis): rule files that load without errors.

`rule_texts()` gives texts, `rule_files()` their definitions. What they test is small, so that random events meet it:

- events of the types `TYPES`, with the attributes `VALUES` (numbers 0 to 3, booleans, null), `TEXT` ('x', 'y' or null) and `KEY`
- the n-th monitor or machine is `m<n>` and pushes `x<n>` and `y<n>`; with `chained` it may mention what earlier ones push
- machine literals settle on every input, and push nothing before the first event (see `_machine`)
"""

from __future__ import annotations

from functools import cache
from random import Random

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from coincide.lang.ecl.definition import File
from coincide.lang.ecl.parse import parse
from coincide.model.event import Event, Value, primitive
from coincide.source import SourceText

TYPES = ("a", "b", "c", "d")
VALUES = ("v", "w")
TEXT = "s"
KEY = "k"
NAMED = ("p", "q")

LISTS = ("accumulate", "select", "select*", "sequential", "parallel")
REPETITIONS = ("persist", "repeat", "loop")

_values = st.sampled_from(VALUES)
CONSTANTS = ("1", "true", "0", "1", "2", "true", "false", "3")
_comparisons = st.sampled_from(("=", "!=", "<", "<=", ">", ">="))
_ranges = st.sampled_from(("is null", "is not null", "in ({0}, {1})", "not in ({0})", "between {0} and {1}", "in ({1}, 2, {0})"))
_others = st.sampled_from(
    ("true", "false", f"{TEXT} = 'x'", f"{TEXT} > 'x'", f"{TEXT} like 'x%'", "v > w", "v + w = 3", "abs(v - 2) = 1")
)
_attributes = st.sampled_from(("", "", ", n: v", ", n: v + 1, at: time", ", hot: a and v > 1", ", n: coalesce(w, -1), of: type"))


@st.composite
def rule_texts(
    draw: DrawFn, detectors: int = 3, depth: int = 3, machines: bool = True, keys: bool = True, chained: bool = True
) -> str:
    """A rule file with up to so many monitors and machines, whose expressions are nested about so deep. Named predicates
    may stand before or after what uses them."""
    constants = tuple(
        draw(st.lists(st.sampled_from(CONSTANTS), min_size=2, max_size=3))
    )  # few, so that tests have them in common
    named = [_named(draw, name, NAMED[:i], constants) for i, name in enumerate(NAMED)]
    definitions: list[str] = []
    types: tuple[str, ...] = TYPES
    for number in range(1, draw(st.integers(1, detectors)) + 1):
        leaves = predicates(types, NAMED, constants)
        head = f"m{number}{draw(_keys) if keys else ''}"
        if machines and draw(st.integers(0, 3)) == 0:
            definitions.append(f"machine {head} {{ {_machine(draw, leaves, _pushes(number))} }}")
        else:
            definitions.append(f"monitor {head} = {draw(_body(leaves, _pushes(number), depth))}")
        types = (*types, f"x{number}", f"y{number}") if chained else types
    parts = named + definitions if draw(st.booleans()) else definitions + named
    return "\n".join(parts) + "\n"


def value_comparisons(most: int = 4) -> SearchStrategy[list[str]]:
    """Tests that compare an attribute with few constants, which they have in common. Hypothesis chooses the seed."""
    return st.builds(_value_comparisons, st.integers(0, 2**32 - 1), st.integers(0, most - 1).map(lambda fewer: most - fewer))


def _value_comparisons(seed: int, count: int) -> list[str]:
    dice = Random(seed)
    constants = dice.sample(CONSTANTS, 3)
    forms = ("= {0}", "= {0}", "!= {0}", "< {0}", ">= {0}", "in ({0}, {1})", "not in ({0})", "between {0} and {1}", "is null")
    values = (VALUES[0], VALUES[0], VALUES[1])
    return [f"{dice.choice(values)} {dice.choice(forms).format(*dice.choices(constants, k=2))}" for _ in range(count)]


def rule_files(
    detectors: int = 3, depth: int = 3, machines: bool = True, keys: bool = True, chained: bool = True
) -> SearchStrategy[File]:
    """The same as definitions."""
    return rule_texts(detectors, depth, machines, keys, chained).map(lambda text: parse(SourceText("random.ecl", text)))


def event_lists(size: int = 12) -> SearchStrategy[list[Event]]:
    """Up to so many events, not in order, that meet the rules. Hypothesis chooses the seed and how many."""
    return st.builds(_events, st.integers(0, 2**32 - 1), st.integers(0, size).map(lambda fewer: size - fewer))


def _events(seed: int, count: int) -> list[Event]:
    dice = Random(seed)
    events = []
    for position in range(1, count + 1):
        lo = dice.randint(0, 8) * 1000
        attributes: dict[str, Value] = {
            name: dice.choice((None, 0.0, 1.0, 2.0, 3.0, 1.0, True, False, 2.0**53, 2**53 + 1)) for name in VALUES
        }
        attributes |= {TEXT: dice.choice((None, "x", "y")), KEY: dice.choice((None, 1.0, "1", True, "u", 2.0**53, 2**53 + 1))}
        present: dict[str, Value] = {name: value for name, value in attributes.items() if value is not None}
        kind, source = dice.choice((*TYPES, "x1", "y1")), dice.choice((None, "s1", "s2", "s3"))
        events.append(primitive(kind, lo, lo + dice.choice((0, 0, 0, 2000)), str(position), present, source))
    return events


# Predicates.


@cache
def predicates(
    types: tuple[str, ...] = TYPES, named: tuple[str, ...] = (), constants: tuple[str, ...] = CONSTANTS
) -> SearchStrategy[str]:
    """Mostly bare types; every kind of test that analyses tell apart, simple and opaque."""
    bare = st.sampled_from((*types, *named))
    test = st.one_of(bare, bare, _tests(types, constants))
    inner = st.one_of(test, st.tuples(test, test).map(lambda t: f"({t[0]} or {t[1]})"), test.map(lambda t: f"(not ({t}))"))
    pair = st.tuples(inner, st.sampled_from(("and", "or")), inner).map(" ".join)
    return st.one_of(bare, test, test.map(lambda t: f"not {t}"), pair)


def _tests(types: tuple[str, ...], constants: tuple[str, ...]) -> SearchStrategy[str]:
    one, two = st.sampled_from(constants), st.tuples(st.sampled_from(constants), st.sampled_from(constants))
    quoted = st.sampled_from(types).map(repr)
    return st.one_of(
        _comparing(one, two),
        _others,
        quoted.map(lambda t: f"type != {t}"),
        st.tuples(quoted, quoted).map(lambda t: f"type in ({t[0]}, {t[1]})"),
    )


def _comparing(one: SearchStrategy[str], two: SearchStrategy[tuple[str, str]]) -> SearchStrategy[str]:
    return st.one_of(
        st.tuples(_values, _comparisons, one).map(" ".join),
        st.tuples(_values, st.sampled_from(("=", "!=")), one).map(" ".join),
        st.tuples(_values, _ranges, two).map(lambda t: f"{t[0]} {t[1].format(*t[2])}"),
    )


def _named(draw: DrawFn, name: str, others: tuple[str, ...], constants: tuple[str, ...]) -> str:
    return f"{name} = {draw(predicates(TYPES, others, constants))}"


# Correlation expressions.


def correlations(leaves: SearchStrategy[str], pushes: SearchStrategy[str], depth: int) -> SearchStrategy[str]:
    """Of every kind, nested at most so deep. Many leaves push, so that most monitors have something to say."""
    pushing = st.tuples(pushes, leaves).map(lambda t: f"{t[0]} {{ {t[1]} }}")
    if depth == 0:
        return st.one_of(leaves, pushing)
    inner = correlations(leaves, pushes, depth - 1)
    parts = st.lists(inner, min_size=1, max_size=3).map(", ".join)
    maximum = st.sampled_from(("", "", "(1)", "(2)", "(3)"))
    return st.one_of(
        pushing,
        st.tuples(pushes, inner).map(lambda t: f"{t[0]} {{ {t[1]} }}"),
        st.tuples(pushes, inner).map(lambda t: f"repeat {{ {t[0]} {{ {t[1]} }} }}"),
        st.tuples(st.sampled_from(LISTS), parts).map(lambda t: f"{t[0]} {{ {t[1]} }}"),
        st.tuples(inner, inner).map(lambda t: f"do {{ {t[0]} }} unless {{ {t[1]} }}"),
        inner.map(lambda t: f"fail {{ {t} }}"),
        st.tuples(st.sampled_from(REPETITIONS), maximum, inner).map(lambda t: f"{t[0]}{t[1]} {{ {t[2]} }}"),
        st.lists(st.tuples(leaves, inner).map(lambda t: f"in ({t[0]}) do {{ {t[1]} }}"), min_size=1, max_size=3).map(" ".join),
    )


def _body(leaves: SearchStrategy[str], pushes: SearchStrategy[str], depth: int) -> SearchStrategy[str]:
    """Mostly repeated: what runs once only is soon over."""
    expression = correlations(leaves, pushes, depth)
    repeated = st.tuples(pushes, expression).map(lambda t: f"repeat {{ {t[0]} {{ {t[1]} }} }}")
    return st.one_of(expression, expression.map(lambda t: f"repeat {{ {t} }}"), repeated)


_keys = st.sampled_from(("", "", f" by {KEY}", f" by {KEY}, source", " by source"))


def _pushes(number: int) -> SearchStrategy[str]:
    """With attributes of numbers, texts, booleans and nulls."""
    return st.tuples(st.sampled_from("xy"), _attributes).map(lambda t: f"push({t[0]}{number}{t[1]})")


# Machine literals.

PENDING = ("r1", "r2")  # reached on events only, so that nothing is pushed before the first one
STATES = ("q1", "q2", "q3", "q4")
RANKED = PENDING + STATES


def _machine(draw: DrawFn, leaves: SearchStrategy[str], pushes: SearchStrategy[str]) -> str:
    """Items of a machine that is valid whatever its events.

    It settles: an internal transition clears at least the states that enable it and leads to states of higher rank only, so
    the configuration, read as a binary number with the lowest rank in front, gets smaller with each internal step."""
    initial = draw(st.lists(st.sampled_from(STATES), min_size=1, max_size=2, unique=True))
    items = [f"initial {', '.join(initial)}"]
    names = [f"t{i}" for i in range(1, draw(st.integers(2, 6)) + 1)]
    for name in names:
        internal = draw(st.integers(0, 2)) == 0
        items.append(f"{name}: {_internal(draw, pushes) if internal else _event(draw, leaves, pushes, initial)}")
    order = draw(st.lists(st.sampled_from(names), unique=True, max_size=3))
    if len(order) > 1:
        items.append(f"order {' < '.join(order)}")
    return " ".join(f"{item};" for item in items)


def _event(draw: DrawFn, leaves: SearchStrategy[str], pushes: SearchStrategy[str], initial: list[str]) -> str:
    """Often from an initial state: most machines should do something."""
    enabling = [draw(st.one_of(st.just(initial), _clauses(RANKED))), *draw(_further)]
    some = st.lists(st.sampled_from(RANKED), min_size=1, max_size=2, unique=True).map(", ".join)
    clear = draw(st.one_of(st.just(""), st.just(" clear *"), st.just(" clear none"), some.map(lambda s: f" clear {s}")))
    target = draw(st.one_of(_clauses(PENDING), st.lists(st.sampled_from(RANKED), max_size=3, unique=True)))
    push = draw(st.one_of(st.just(""), pushes))
    return f"{_conjunction(enabling)} on {draw(leaves)}{clear} -> {', '.join(target)} {push}"


def _internal(draw: DrawFn, pushes: SearchStrategy[str]) -> str:
    """One that pushes waits for a pending state; one that does not might run at the start, so it leads to none."""
    pushing = draw(st.booleans())
    enabling = [draw(_clauses(PENDING if pushing else RANKED)), *draw(_further)]
    highest = max(RANKED.index(state) for clause in enabling for state in clause)
    higher = [s for s in RANKED[highest + 1 :] if pushing or s in STATES]
    target = draw(st.lists(st.sampled_from(higher), max_size=2, unique=True)) if higher else []
    clear = draw(st.sampled_from(("", " clear *")))
    return f"{_conjunction(enabling)}{clear} -> {', '.join(target)} {draw(pushes) if pushing else ''}"


def _clauses(states: tuple[str, ...]) -> SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(states), min_size=1, max_size=2, unique=True)


_further: SearchStrategy[list[list[str]]] = st.one_of(st.just([]), st.just([]), st.lists(_clauses(RANKED), max_size=1))


def _conjunction(clauses: list[list[str]]) -> str:
    return " & ".join(" | ".join(clause) for clause in clauses)
