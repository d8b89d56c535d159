"""Phrases, the names of event sets in the English-like language."""

from __future__ import annotations

import re

from coincide.errors import nearest
from coincide.lang.opera.definition import Definition, OfSet
from coincide.syntax import walk

KEYWORDS = frozenset((
    "after", "always", "also", "any", "anything", "at", "before", "by", "called", "detection", "every", "except", "followed",
    "for", "if", "in", "least", "means", "most", "not", "number", "of", "once", "optionally", "or", "report", "same", "the",
    "then", "times", "together", "until", "using", "wait", "when", "where", "with", "within", "without",
))  # fmt: skip
NAME = re.compile(r"[^\W\d]\w*(?:[.-]\w+)*")


def is_name(text: str) -> bool:
    """Can the text be an event type?"""
    return NAME.fullmatch(text) is not None


def slug(phrase: str) -> str:
    return re.sub(r"[\W_]+", "_", phrase).strip("_")


def spoken(name: str) -> str:
    """A phrase whose slug is the name, in quotes."""
    return '"' + name.removeprefix("p_").replace("_", " ") + '"'


def with_phrases(text: str, definition: Definition) -> str:
    """A text about a definition, with the phrases of the rule instead of the names that they have become."""
    sets = {node.name for node in walk(definition.body) if isinstance(node, OfSet)}
    names = "|".join(map(re.escape, sorted(sets, key=len, reverse=True)))
    return re.sub(rf"\b(?:{names})\b", lambda found: spoken(found[0]), text) if names else text


class Phrases:
    """The sets that phrases have become."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def name(self, phrase: str) -> str | None:
        return self._names.get(phrase)

    def define(self, phrase: str) -> str:
        """A second phrase with the same slug gets `_2`."""
        wanted, count = f"p_{slug(phrase)}", 1
        while (name := wanted if count == 1 else f"{wanted}_{count}") in self._names.values():
            count += 1
        self._names[phrase] = name
        return name

    def hint(self, phrase: str) -> str | None:
        return nearest(phrase, self._names)
