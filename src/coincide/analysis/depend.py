"""Which labels an answer depends on: the smallest sets of labels that decide it (ecl.md, section 7, `depends`).

A set decides when it has a label of every *difference*: the labels in which two letters differ that do not do the same. The
differences are found as they are needed, from the choices that they refute (implicit hitting sets), because there may be
millions of them and a few are enough."""

from __future__ import annotations

from collections.abc import Iterator, Mapping


def deciding(letters: Mapping[int, int], labels: int) -> int:
    """The union of the smallest sets of labels that decide, as a mask. `letters` gives each letter what it does."""
    needed = _needed(letters, labels)
    if _refuted(letters, needed) is None:
        return needed
    differences: list[int] = []
    first = _smallest(letters, differences, needed, labels)
    assert first is not None  # all labels together decide
    size, union = first.bit_count(), first
    relevant = _union(_differing(letters))
    for bit in _bits(relevant & ~union):
        if not union & bit and (found := _smallest(letters, differences, needed | bit, size)) is not None:
            union |= found
    return union


def _needed(letters: Mapping[int, int], labels: int) -> int:
    """Labels that are alone in some difference are in every set that decides; with ordinary predicates that is all."""
    alone = 0
    for bit in (1 << i for i in range(labels)):
        if any(letters.get(letter ^ bit, does) != does for letter, does in letters.items()):
            alone |= bit
    return alone


def _refuted(letters: Mapping[int, int], chosen: int) -> int | None:
    """A difference that the chosen labels do not tell, if there is one."""
    seen: dict[int, tuple[int, int]] = {}
    for letter, does in letters.items():
        other, did = seen.setdefault(letter & chosen, (letter, does))
        if did != does:
            return letter ^ other
    return None


def _smallest(letters: Mapping[int, int], differences: list[int], fixed: int, size: int) -> int | None:
    """A smallest set that decides and has all `fixed` labels, if there is one of at most `size` labels. New differences
    are added to those known: they refute smaller sets of later searches too."""
    least = fixed.bit_count()
    while least <= size:
        chosen = _hitting(differences, fixed, least - fixed.bit_count())
        if chosen is None:
            least += 1
            continue
        difference = _refuted(letters, chosen)
        if difference is None:
            return chosen
        differences.append(difference)
    return None


def _hitting(differences: list[int], chosen: int, more: int) -> int | None:
    """The chosen labels with at most so many more, such that every difference has one of them."""
    missed = [difference for difference in differences if not difference & chosen]
    if not missed:
        return chosen
    if _apart(missed) > more:
        return None
    shortest = min(missed, key=int.bit_count)
    for bit in sorted(_bits(shortest), key=lambda bit: -sum(1 for d in missed if d & bit)):
        found = _hitting(missed, chosen | bit, more - 1)
        if found is not None:
            return found
    return None


def _apart(differences: list[int]) -> int:
    """A number of differences with no label in common: each needs a label of its own."""
    count = covered = 0
    for difference in sorted(differences, key=int.bit_count):
        if not difference & covered:
            covered |= difference
            count += 1
    return count


def _differing(letters: Mapping[int, int]) -> Iterator[int]:
    first = next(iter(letters))
    return (first ^ letter for letter in letters)


def _union(masks: Iterator[int]) -> int:
    union = 0
    for mask in masks:
        union |= mask
    return union


def _bits(mask: int) -> Iterator[int]:
    while mask:
        bit = mask & -mask
        yield bit
        mask ^= bit
