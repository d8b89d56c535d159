"""A text in the regular layout of its language: as the printer writes it, with its comments, in its order."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from importlib import import_module
from itertools import pairwise
from typing import Any, NamedTuple

from coincide.editing.fields import TAG
from coincide.editing.marks import COMMENT, marks_of
from coincide.editing.walking import Walk
from coincide.errors import Diagnostic, RuleError
from coincide.languages.base import Language
from coincide.languages.registry import language_name, language_of
from coincide.source import SourceText

BY_STATEMENT = ("ecl", "opera", "ecco", "pretty", "eql")
"""Languages whose files are statements one after another."""

DURATION = re.compile(r"(?<![\w.])[0-9.]+ ?(?:ms|s|min|h|d)\b")
NAMED = re.compile(r"\A// @name .*\n")


@dataclass(frozen=True)
class Statement:
    """A stretch of a text; comments before it are apart."""

    key: object
    start: int
    end: int


class Stretch(NamedTuple):
    start: int
    end: int


@dataclass(frozen=True)
class Parts:
    """A text as statements and comments, as far as it is divided (`inside`). An `opaque` one cannot be; one that is `in_order`
    keeps the order that its author chose."""

    statements: tuple[Statement, ...]
    comments: tuple[Stretch, ...]
    inside: Stretch
    indent: str = ""
    opaque: bool = False
    in_order: bool = False


def formatted(source: SourceText) -> str:
    """Raises RuleError where the text does not hold rules, or where the printer would lose what stands in it."""
    name = language_name(source.name)
    if name == "matchrecognize":
        from coincide.lang.matchrecognize.layout import layout

        return layout(source)
    language = language_of(source.name)
    file = language.parse(source)
    if name == "sigma" or source.name.endswith(".toml"):
        raise RuleError(Diagnostic("a file of this kind says more than its rules: it has no layout of its own"))
    printed = SourceText(source.name, language.print_file(file))
    made = _with_comments(source, printed)
    ways = (_as_written(made, source.text), made, source.text)
    return next(text for text in ways if text is source.text or _means(language, source, text, file))


def _as_written(made: str, own: str) -> str:
    """Lengths of time in the units that the author chose; no name that nobody gave."""
    given = DURATION.findall(own)
    if len(DURATION.findall(made)) == len(given):
        units = iter(given)
        made = DURATION.sub(lambda found: next(units), made)
    return made if "@name" in own else NAMED.sub("", made)


def _means(language: Language, source: SourceText, made: str, file: Any) -> bool:
    try:
        return bool(language.parse(SourceText(source.name, made)) == file)
    except RuleError:
        return False


def _with_comments(source: SourceText, printed: SourceText) -> str:
    """Statement by statement, where there are comments: printed, if none stands inside."""
    divide = _xml_parts if source.name.endswith(".xml") else _parts
    own, other = divide(source), divide(printed)
    if not own.comments:
        return printed.text if not own.in_order else _joined(source, own, other, printed)
    if {s.key for s in own.statements} != {s.key for s in other.statements} or own.opaque:
        raise RuleError(Diagnostic("comments would be lost: the layout of this text is left as it is"))
    return _joined(source, own, other, printed)


def _joined(source: SourceText, own: Parts, other: Parts, printed: SourceText) -> str:
    made = {statement.key: printed.text[statement.start : statement.end] for statement in other.statements}
    lines: list[str] = []
    at = own.inside.start
    for statement in own.statements:
        _add_between(lines, source, Stretch(at, statement.start), own)
        commented = any(statement.start <= comment.start < statement.end for comment in own.comments)
        lines.append(own.indent + (source.text[statement.start : statement.end] if commented else made[statement.key]))
        at = statement.end
    _add_between(lines, source, Stretch(at, own.inside.end), own)
    body = "\n".join(lines).strip("\n") + "\n"
    return source.text[: own.inside.start].rstrip("\n") + "\n" * (own.inside.start > 0) + body + source.text[own.inside.end :]


def _add_between(lines: list[str], source: SourceText, gap: Stretch, parts: Parts) -> None:
    """Comments, one behind a statement on its line, with the empty lines around them: one at most."""
    last, text = gap.start, source.text
    for comment in parts.comments:
        if not gap.start <= comment.start < gap.end:
            continue
        between = text.count("\n", last, comment.start)
        if between == 0 and lines:
            lines[-1] += "  " + text[comment.start : comment.end].rstrip()
        else:
            lines += [""] * (between > 1 and bool(lines)) + [parts.indent + text[comment.start : comment.end].rstrip()]
        last = comment.end
    if lines and text.count("\n", last, gap.end) > 1:
        lines.append("")


def _parts(source: SourceText) -> Parts:
    """Statements by their number; those of ECL, which the printer puts in another order, by what they define."""
    language = language_name(source.name)
    everything = Stretch(0, len(source.text))
    if language not in BY_STATEMENT:
        comments = tuple(Stretch(m.start, m.end) for m in marks_of(source) if m.kind == COMMENT)
        return Parts((), comments, everything, opaque=True)
    walk: Walk = import_module(f"coincide.editing.languages.{language}").walk_of(source)
    found = []
    for number, (start, end) in enumerate(pairwise([*sorted(set(walk.statements)), len(walk.tokens)])):
        tokens = walk.tokens[start:end]
        key = tuple(token.named.text for token in tokens[:2]) if language == "ecl" else number
        found.append(Statement(key, tokens[0].start, tokens[-1].end))
    comments = tuple(Stretch(token.start, token.end) for token in walk.everything if token.kind == COMMENT)
    return Parts(tuple(found), comments, everything, in_order=language == "ecl")


def _xml_parts(source: SourceText) -> Parts:
    """The elements directly in the root, each by its name and number."""
    found: list[Statement] = []
    comments: list[Stretch] = []
    counts: Counter[str] = Counter()
    depth, start, inside = 0, 0, [0, len(source.text)]
    for tag in TAG.finditer(source.text):
        if tag["comment"] is not None:
            comments.append(Stretch(tag.start(), tag.end()))
        if not tag["name"]:
            continue
        alone = tag["given"].endswith("/")
        if depth == 1 and not tag["close"]:
            start = tag.start()
            counts[tag["name"]] += 1
        if depth == 0:
            inside[0] = tag.end()
        depth += -1 if tag["close"] else not alone
        if depth == 1 and start and (tag["close"] or alone):
            found.append(Statement((tag["name"], counts[tag["name"]]), start, tag.end()))
        if depth == 0:
            inside[1] = tag.start()
    return Parts(tuple(found), tuple(comments), Stretch(*inside), "  ")
