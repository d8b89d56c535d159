"""What rules read and no event has: a name that is mistyped makes no error, only silence. Nor does a comparison of texts with
numbers.

`Unmet` is asked twice: with the schema of a table, before anything is run, and with what was there, when all events have gone by.
It tells nothing twice. A type or an attribute that some rule makes is not missed."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING

from coincide.adapters.mapping import DEFAULT, FieldMapping
from coincide.adapters.seen import Seen
from coincide.adapters.timeunits import time_warning
from coincide.errors import Diagnostic, RuleError, nearest_name
from coincide.expr.functions import NUMBER, TEXT
from coincide.expr.quantities import counted
from coincide.expr.tree import Expr, Reference
from coincide.expr.typing import Types, infer, is_common
from coincide.lang.shared.reads import ATTRIBUTE, KEY, TYPE, Mention, Reads, keys_of
from coincide.rulebook import Rulebook
from coincide.source import Span
from coincide.syntax import walk

if TYPE_CHECKING:
    from coincide.lang.shared.eventsets import Limit

SHOWN = 5
"""Of what was there, so many names are shown where none is near."""
MOST = 20
"""So many names that are missing are told one by one."""
LOOKED_AT, NAMES = 200, 2_000
"""For so many of them something near is looked for, among so many names that are there: rules come in thousands, too."""

ENVELOPE_KINDS = {"type": TEXT, "id": TEXT, "source": TEXT, "time": NUMBER}


class Unmet:
    """Compares what the rules of a book read with what is there, by this mapping."""

    def __init__(self, book: Rulebook, mapping: FieldMapping = DEFAULT) -> None:
        self._book = book
        self._mapping = mapping
        self._serves = mapping.serves
        self._reported_names: set[tuple[bool, str]] = set()
        self._of_other_kinds: set[str | Expr] = set()

    # Before the run.

    def in_table(self, kinds: Mapping[str, str | None]) -> list[Diagnostic]:
        """What columns cannot give: `kinds` are the attributes that a table has, with the types of their values where these are
        known (number, string, boolean)."""
        missing = list(self._missing((KEY, ATTRIBUTE), kinds))
        found = _shortened([self._no_column(mention, kinds) for mention in missing[:LOOKED_AT]], len(missing) - LOOKED_AT)
        return found + self._mistyped(kinds, "the column '{}' holds a {}")

    def _no_column(self, mention: Mention, kinds: Mapping[str, object]) -> Diagnostic:
        if mention.name in self._serves:
            return self._in_envelope(mention)
        near = nearest_name(mention.name, list(kinds)[:NAMES])
        meant = f"; did you mean '{near}'?" if near is not None else ""
        hint = None if near is not None else _there("the columns", list(kinds))
        return _warning(f"the table has no column for the {mention.what} '{mention.name}'{meant}", mention, hint)

    def _in_envelope(self, mention: Mention) -> Diagnostic:
        name = self._serves[mention.name]
        return _warning(
            f"by the mapping '{mention.name}' is the {name} of events, not an attribute", mention, f"rules read it as '{name}'"
        )

    # After the run.

    def after(self, seen: Seen, *, part: bool = False) -> list[Diagnostic]:
        """What no event had. In a part of a longer run something may well be missing, as may what rules refuse anywhere: then it
        is told only if there is something like it."""
        if not seen.events:
            return [] if part else [Diagnostic("there were no events", severity="warning")]
        diagnostics = [] if (warning := self._other_unit(seen)) is None else [warning]
        attributes = {name: count for name, count in seen.attributes.items() if count}
        types: Mapping[str, int] = seen.types
        missing = [(m, types, "types of events") for m in self._missing((TYPE,), types)]
        missing += [(m, attributes, "attributes") for m in self._missing((KEY, ATTRIBUTE), attributes)]
        missing += [(m, attributes, "attributes") for m in self._typed_in_vain(attributes)]
        found = [
            self._in_envelope(m)
            if m.what != TYPE and m.name in self._serves
            else _not_there(m, there, words, part or m.refused or m.elsewhere in attributes)
            for m, there, words in missing[:LOOKED_AT]
        ]
        diagnostics += _shortened([one for one in found if one is not None], 0 if part else len(missing) - LOOKED_AT)
        return diagnostics + self._mistyped(seen.kinds, "'{}' was a {} in all events")

    def _other_unit(self, seen: Seen) -> Diagnostic | None:
        if seen.earliest is None or seen.latest is None:
            return None
        return time_warning(seen.earliest, seen.latest, self._mapping.unit)

    def _typed_in_vain(self, there: Collection[str]) -> Iterator[Mention]:
        """Columns of CSV whose type is given, and that are not there."""
        for name in self._mapping.column_types:
            if name not in there and name not in self._mapping.envelope and (False, name) not in self._reported_names:
                self._reported_names.add((False, name))
                yield Mention(ATTRIBUTE, name)

    def unused(self, types: Collection[str]) -> list[Diagnostic]:
        """Of these types no event came that the conditions of the rules let through. Of rows that were filtered no more is
        known. What rules refuse may well be missing."""
        hint = "detect(…, report=Report()) tells which types there are"
        missing = (
            m for m in self._missing((TYPE,), self.names(TYPE) - frozenset(types)) if not m.refused and m.elsewhere is None
        )
        return _shortened([_warning(f"no event that the rules could use had the type '{m.name}'", m, hint) for m in missing])

    # Values of another kind than the rules want: of what a table holds, or of what was there.

    def _mistyped(self, kinds: Mapping[str, str | None], words: str) -> list[Diagnostic]:
        """Each attribute, and each comparison, once. `words` say of a name which kind it has."""
        otherwise = [_warning(_other_kind(m, words.format(m.name, kinds[m.name])), m) for m in self._declared_otherwise(kinds)]
        return _shortened(otherwise) + _shortened(list(self._clashes(kinds, words)))

    def _declared_otherwise(self, kinds: Mapping[str, str | None]) -> Iterator[Mention]:
        for m in self._mentions((KEY, ATTRIBUTE)):
            if None not in (m.kind, kind := kinds.get(m.name)) and m.kind != kind and m.name not in self._of_other_kinds:
                self._of_other_kinds.add(m.name)
                yield m

    def _clashes(self, kinds: Mapping[str, str | None], words: str) -> Iterator[Diagnostic]:
        """Comparisons that are null for every event."""
        for reads in self._book.reads:
            made = self._given_to(reads)
            known = {name: kind for name, kind in kinds.items() if name not in made} if made else kinds
            for tree in dict.fromkeys(tree for tree in reads.tests if is_common(tree)):
                for part, clash in _clashes(tree, partial(_kind, known)):
                    if part not in self._of_other_kinds:
                        self._of_other_kinds.add(part)
                        hint = "; ".join([*_read(part, known, words), "such a comparison is null"])
                        yield Diagnostic(clash.message, clash.span or part.span, "warning", hint, "types")

    # What is read, and what is made.

    def names(self, *what: str) -> frozenset[str]:
        """All names of TYPE, KEY or ATTRIBUTE that events must have, or may have instead."""
        found = {mention.name for mention in self._mentions(what)}
        instead = {m.elsewhere for m in self._mentions((TYPE,)) if m.elsewhere is not None} if ATTRIBUTE in what else set()
        return frozenset(found | instead)

    def place(self, attribute: str) -> Span | None:
        """Where rules read it first."""
        found = (mention.span for mention in self._mentions((KEY, ATTRIBUTE)) if mention.name == attribute)
        return next(found, None)

    def _missing(self, what: Collection[str], there: Collection[str]) -> Iterator[Mention]:
        """Each name once, where it is mentioned first; what is refused, after all else."""
        for mention in sorted(self._mentions(what), key=lambda mention: mention.refused):
            name = mention.what == TYPE, mention.name
            if mention.name not in there and name not in self._reported_names:
                self._reported_names.add(name)
                yield mention

    def _mentions(self, what: Collection[str]) -> Iterator[Mention]:
        """Of what events must have: not of what rules make for those that mention it."""
        for reads in self._book.reads:
            made = self._given_to(reads)
            for mention in reads.mentions:
                if mention.what in what and mention.name not in (self._makers if mention.what == TYPE else made):
                    yield mention
        for limit in self._book.compiled.limits:
            yield from (mention for mention in self._limited(limit) if mention.what in what)

    def _limited(self, limit: Limit) -> Iterator[Mention]:
        """Of a detection, what ends its limit must be there, and what it has is there."""
        from coincide.detection.suppression import awaited_types

        given = {name for maker in self._makers.get(limit.type, ()) for name in maker.gives}
        for name in awaited_types(limit) if limit.type in self._makers else [limit.type]:
            if name not in self._makers:
                yield Mention(TYPE, name, limit.span)
        yield from keys_of([key for key in limit.keys if key not in given], limit.span)

    def _given_to(self, reads: Reads) -> frozenset[str]:
        """Attributes of the detections that a definition reads."""
        feeding = [self._makers[name] for name in reads.names(TYPE) if name in self._makers]
        return frozenset(name for makers in feeding for maker in makers for name in maker.gives)

    @cached_property
    def _makers(self) -> dict[str, list[Reads]]:
        """By the types of detections, and by the names of definitions that others refer to."""
        makers: dict[str, list[Reads]] = {}
        for detector, reads in zip(self._book.detectors, self._book.reads, strict=True):
            for name in {detector.name, *detector.outputs}:
                makers.setdefault(name, []).append(reads)
        return makers


def _kind(kinds: Mapping[str, str | None], reference: Reference) -> str | None:
    return ENVELOPE_KINDS.get(reference.name) or kinds.get(reference.name)


def _clashes(tree: Expr, types: Types) -> Iterator[tuple[Expr, Diagnostic]]:
    """The innermost parts of a test whose kinds do not go together, and what is wrong with them."""
    try:
        infer(tree, types)
    except RuleError as error:
        inside = [clash for child in tree.children for clash in _clashes(child, types)]
        yield from inside or ((tree, diagnostic) for diagnostic in error.diagnostics)


def _read(tree: Expr, kinds: Mapping[str, str | None], words: str) -> list[str]:
    """What is known of the attributes in a test."""
    names = dict.fromkeys(node.name for node in walk(tree) if isinstance(node, Reference))
    always = [f"'{name}' is always a {ENVELOPE_KINDS[name]}" for name in names if name in ENVELOPE_KINDS]
    return always + [words.format(name, kinds[name]) for name in names if kinds.get(name) and name not in ENVELOPE_KINDS]


def _warning(message: str, mention: Mention, hint: str | None = None) -> Diagnostic:
    return Diagnostic(message, mention.span, "warning", hint, "unmet")


def _other_kind(mention: Mention, fact: str) -> str:
    return f"attribute '{mention.name}' is a {mention.kind} to the rules, but {fact}"


def _not_there(mention: Mention, there: Mapping[str, int], words: str, only_near: bool) -> Diagnostic | None:
    near = nearest_name(mention.name, sorted(there, key=lambda name: -there[name])[:NAMES])
    message = f"no event had the {mention.what} '{mention.name}'"
    if near is not None:
        count = there[near]
        return _warning(f"{message}; did you mean '{near}' ({counted(count, 'event')})?", mention)
    return None if only_near else _warning(message, mention, _there(words, sorted(there, key=lambda name: -there[name])))


def _shortened(found: list[Diagnostic], more: int = 0) -> list[Diagnostic]:
    """Of many, first those for which there is something near, and how many the others are."""
    found = sorted(found, key=lambda told: "did you mean" not in told.message)
    left = max(more, 0) + len(found) - MOST
    if left <= 0:
        return found
    return [*found[:MOST], Diagnostic(f"and {left:,} more of the kind", severity="warning")]


def _there(words: str, names: list[str]) -> str | None:
    more = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
    return f"{words} that were there: {', '.join(names[:SHOWN])}{more}" if names else None
