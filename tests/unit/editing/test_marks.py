"""What editors say of names agrees with what the languages say of the same files."""

from __future__ import annotations

import random
import time
from itertools import pairwise

import pytest
from corpus import loaded, sources

from coincide.editing.fields import mended
from coincide.editing.marks import ATTRIBUTE, COMMENT, DETECTOR, EVENT, FUNCTION, KEYWORD, marks_of
from coincide.editing.words import functions_of, parts_of
from coincide.lang.matchrecognize.definition import HELD
from coincide.lang.matchrecognize.functions import CASTS
from coincide.lang.shared.reads import ATTRIBUTE as READ
from coincide.lang.shared.reads import KEY, TYPE
from coincide.languages.registry import MODULES, language_name
from coincide.rulebook import Rulebook
from coincide.source import SourceText

LANGUAGES = sorted({module.rpartition(".")[2] for module in MODULES.values()})
UNWRITTEN = {"eql", "sigma", "matchrecognize"}
"""Languages that make a name where none is written."""
UNMENTIONED = {"eql", "sigma", "amit"}
"""Languages in which types stand that no rule is told to read: categories, references, declarations."""


def texts(language: str, errors: bool = False) -> list[SourceText]:
    return [source for source in sources(errors) if language_name(source.name) == language]


def streams(book: Rulebook) -> set[str]:
    """Types that ECCO's statements about the stream name."""
    rules = [rule for _, file in book.files for part in ("stamps", "duplicates") for rule in getattr(file, part, ())]
    return {name for rule in rules for name in rule.types if name is not None}


@pytest.mark.parametrize("language", LANGUAGES)
def test_names_are_those_that_the_language_finds(language: str) -> None:
    looked = 0
    for source in texts(language):
        book = loaded(source)
        if book is None or "<template" in source.text:
            continue
        looked += 1
        marks = marks_of(source)
        events = {mark.name for mark in marks if mark.kind == EVENT}
        defined = {mark.name for mark in marks if mark.kind == EVENT and mark.defines}
        made = {output for detector in book.detectors for output in detector.outputs if not output.endswith(HELD)}
        read = {name for reads in book.reads for name in reads.names(TYPE)}
        attributes = {name for reads in book.reads for name in reads.names(READ, KEY)}
        assert made <= defined or language in UNWRITTEN, source.name
        assert read <= events, source.name
        assert attributes <= {mark.name for mark in marks if mark.kind == ATTRIBUTE}, source.name
        seen = {name for detector in book.detectors for name in detector.inputs.detections}
        assert events <= made | read | seen | streams(book) or language in UNMENTIONED, source.name
    assert looked > 20


@pytest.mark.parametrize("language", LANGUAGES)
def test_marks_say_what_stands_there(language: str) -> None:
    for source in texts(language, errors=True):
        marks = marks_of(source)
        assert all(one.end <= other.start for one, other in pairwise(marks)), source.name
        for mark in marks:
            written = source.text[mark.start : mark.end]
            assert mark.is_name == bool(mark.name), (source.name, mark)
            known = {word.lstrip("@") for word in parts_of(language)}
            if mark.kind == KEYWORD and not source.name.endswith((".xml", ".yaml", ".yml", ".toml")):
                assert written.lower().lstrip("@") in known | {"events", *CASTS}, (source.name, written)
            if mark.kind == FUNCTION and loaded(source) is not None:
                known = {name.lower() for name in functions_of(language)}
                assert written.lower().rstrip("~") in known, (source.name, written)


def test_places_and_kinds() -> None:
    text = "high = value > 6  # often\nmonitor m by k = repeat { push(up, v: value) { high and not reset } }\n"
    found = [
        (m.kind, text[m.start : m.end], m.defines) for m in marks_of(SourceText("a.ecl", text)) if m.is_name or m.kind == COMMENT
    ]
    assert found == [
        ("predicate", "high", True),
        (ATTRIBUTE, "value", False),
        (COMMENT, "# often", False),
        (DETECTOR, "m", True),
        (ATTRIBUTE, "k", False),
        (EVENT, "up", True),
        (ATTRIBUTE, "v", True),
        (ATTRIBUTE, "value", False),
        ("predicate", "high", False),
        (EVENT, "reset", False),
    ]


def test_a_line_that_is_wrong_costs_the_marks_of_that_line_only() -> None:
    text = "events:\n  quote: {change: number}\n  [oops\nsituations:\n  fall:\n    lifespan: day\n    all: [quote]\n"
    names = {(mark.kind, mark.name) for mark in marks_of(SourceText("a.amit.yaml", text))}
    assert {(EVENT, "quote"), (EVENT, "fall"), ("lifespan", "day"), (ATTRIBUTE, "change")} <= names
    assert mended(SourceText("a.amit.yaml", ""), lambda source: source.text) == ""


def mutants(text: str, chance: random.Random, count: int) -> list[str]:
    """As people leave texts while they type: cut off, with a piece missing, twice, or foreign."""
    found = []
    for _ in range(count):
        start = chance.randrange(len(text) + 1)
        end = min(len(text), start + chance.randrange(1, 30))
        piece = chance.choice(
            ["", text[start:end] * 2, "'", '"', "(", "{", "]", "<", "</", "/*", "`", "\x00", ": ", "- ", "\n\t", "é", "=", "."]
        )
        found += [text[:start], text[:start] + piece + text[end:]]
    return found


@pytest.mark.parametrize("language", LANGUAGES)
def test_half_written_texts_have_marks(language: str) -> None:
    chance = random.Random(language)
    for source in chance.sample(texts(language), 20):
        for text in mutants(source.text, chance, 4):
            marks = marks_of(SourceText(source.name, text))
            assert all(0 <= mark.start < mark.end <= len(text) for mark in marks)


def test_marks_are_made_while_one_types() -> None:
    source = max((text for text in sources() if text.name.endswith(".ecl")), key=lambda text: len(text.text))
    text = (source.text + "\n") * max(1, 20_000 // len(source.text))
    began = time.process_time()
    marks = marks_of(SourceText("long.ecl", text))
    assert len(marks) > 1000
    assert time.process_time() - began < 5  # a second at most, on a machine that does nothing else
