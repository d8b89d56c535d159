"""The smallest sets of labels that decide: agreement with a search through all sets."""

from __future__ import annotations

import random
from itertools import combinations

from coincide.analysis.depend import deciding


def by_search(letters: dict[int, int], labels: int) -> int:
    for size in range(labels + 1):
        masks = [sum(1 << i for i in chosen) for chosen in combinations(range(labels), size)]
        union = 0
        for mask in masks:
            does = {(letter & mask, what) for letter, what in letters.items()}
            if len({seen for seen, _ in does}) == len(does):
                union |= mask
        if union or (size == 0 and all(what == next(iter(letters.values())) for what in letters.values())):
            return union
    return 0


def test_agrees_with_search() -> None:
    chance = random.Random(7)
    for _ in range(400):
        labels = chance.randint(1, 6)
        chosen = chance.sample(range(1 << labels), chance.randint(1, min(12, 1 << labels)))
        letters = {letter: chance.randint(0, chance.randint(1, 3)) for letter in chosen}
        assert deciding(letters, labels) == by_search(letters, labels), letters


def test_nothing_to_decide() -> None:
    assert deciding({0: 5, 1: 5, 3: 5}, 2) == 0


def test_complements_tell_each_other() -> None:
    """Twenty pairs of labels that are each other's opposites: two to the twentieth smallest sets, all found at once."""
    base = sum(1 << 2 * i for i in range(20))
    letters = {base: 0} | {base ^ (0b11 << 2 * i): i + 1 for i in range(20)}
    assert deciding(letters, 40) == (1 << 40) - 1


def test_many_labels_of_one_attribute() -> None:
    letters = {0: 0} | {1 << i: 1 + i % 2 for i in range(1000)}
    assert deciding(letters, 1000) == (1 << 1000) - 1


def test_fifteen_labels_at_random() -> None:
    chance = random.Random(3)
    letters = {chance.getrandbits(15): chance.randint(0, 3) for _ in range(300)}
    assert deciding(letters, 15) == by_search(letters, 15)
