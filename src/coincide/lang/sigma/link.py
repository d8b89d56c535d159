"""Rules of all files together: their names, what they refer to, which of them are shown (sections 2, 6, 7)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from coincide.errors import Diagnostic, RuleError, nearest
from coincide.lang.shared.about import is_of_level, made_name
from coincide.lang.shared.digest import digest_of
from coincide.lang.sigma.definition import Alias, CorrelationRule, DetectionRule, File, Rule
from coincide.lang.sigma.print import print_rule
from coincide.source import Reading, SourceText, Span


@dataclass(frozen=True)
class Linked:
    """A rule with all that it refers to, inner rules first: it can be evaluated by itself. `rules` are the positions in `needs`
    of those that a correlation refers to; `shown`: does it make detections that are given out?"""

    name: str
    rule: Rule
    needs: tuple[Linked, ...] = ()
    rules: tuple[int, ...] = ()
    aliases: tuple[tuple[str, tuple[tuple[int, str], ...]], ...] = ()  # attributes by position
    shown: bool = True
    mapping: str = ""

    def text(self) -> str:
        """Of all that takes part."""
        needs = (need.digest for need in self.needs)
        return "\0".join([self.name, str(self.shown), print_rule(self.rule), self.mapping, *needs])

    @cached_property
    def digest(self) -> str:
        return digest_of("sigma", self.text())

    @cached_property
    def together(self) -> tuple[Linked, ...]:
        """All rules that take part, each once, inner ones first."""
        found = {inner.name: inner for need in self.needs for inner in need.together}
        return (*found.values(), self)


Files = Sequence[tuple[SourceText, File]]


def linked_files(files: Files, taken: Collection[str] = ()) -> tuple[list[list[Linked]], list[Diagnostic]]:
    """The rules of each file; and, where the reading keeps going, what is wrong with those that are left out. Names that are
    `taken` are no rule's of Sigma."""
    return _Linker(files, taken).link()


class _Linker:
    def __init__(self, files: Files, taken: Collection[str]) -> None:
        self.files = files
        self.taken = taken
        self.reading = files[0][0].reading if files else Reading()
        self.faults = [fault for _, file in files for fault in file.faults]
        self.rules = [(number, rule) for number, (_, file) in enumerate(files) for rule in file.rules]

    def link(self) -> tuple[list[list[Linked]], list[Diagnostic]]:
        self._check_unique()
        names = _names([rule for _, rule in self.rules], self.taken)
        self.known = {**{rule.head.id: n for n, (_, rule) in enumerate(self.rules) if rule.head.id}, **names}
        self.name_of = {number: name for name, number in names.items()}
        left_out = self._unresolved()
        alive = [n for n in range(len(self.rules)) if n not in left_out]
        hidden = self._not_generated(alive)
        built: dict[int, Linked] = {}
        for number in alive:
            self._build(number, hidden, built)
        out: list[list[Linked]] = [[] for _ in self.files]
        for number in alive:
            out[self.rules[number][0]].append(built[number])
        return out, self.faults

    def _fault(self, message: str, span: Span | None, hint: str | None = None) -> None:
        fault = Diagnostic(message, span, hint=hint)
        if not self.reading.keep_going:
            raise RuleError(fault)
        self.faults.append(fault)

    def _check_unique(self) -> None:
        names: set[str] = set()
        ids: set[str] = set()
        unique = []
        for number, rule in self.rules:
            head, fine = rule.head, True
            if head.name is not None and head.name in names:
                self._fault(f"rule '{head.name}' is already defined", head.name_span)
                fine = False
            if fine and head.id is not None and head.id in ids:
                self._fault(f"id '{head.id}' is already used", head.id_span)
                fine = False
            if fine:
                names.update([head.name] if head.name else [])
                ids.update([head.id] if head.id else [])
                unique.append((number, rule))
        self.rules = unique

    def _unresolved(self) -> set[int]:
        """Correlations that lack something, directly or not."""
        correlations = {n: rule for n, (_, rule) in enumerate(self.rules) if isinstance(rule, CorrelationRule)}
        out: set[int] = set()
        for number, rule in correlations.items():
            if not self._resolves(rule):
                out.add(number)
        for number, rule in correlations.items():
            if number not in out and self._turns_back(number, rule, correlations):
                out.add(number)
        while lacking := {n: r for n in correlations.keys() - out for r in correlations[n].rules if self.known[r.text] in out}:
            for number, reference in sorted(lacking.items()):
                self._fault(f"rule '{self.name_of[number]}' is left out with rule '{reference.text}'", reference.span)
            out |= lacking.keys()
        return out

    def _resolves(self, rule: CorrelationRule) -> bool:
        for reference in rule.rules:
            if reference.text not in self.known:
                self._fault(f"rule '{reference.text}' is not loaded", reference.span, nearest(reference.text, self.known))
                return False
        numbers = {self.known[reference.text] for reference in rule.rules}
        return all(self._is_complete(alias, rule, numbers) for alias in rule.aliases)

    def _is_complete(self, alias: Alias, rule: CorrelationRule, numbers: set[int]) -> bool:
        given = {self.known.get(reference.text) for reference, _ in alias.fields}
        lacking = next((r for r in rule.rules if self.known[r.text] not in given), None)
        if lacking is not None:
            self._fault(f"alias '{alias.name}' has no field for rule '{lacking.text}'", alias.span)
            return False
        strange = next((r for r, _ in alias.fields if self.known.get(r.text) not in numbers), None)
        if strange is not None:
            self._fault(f"alias '{alias.name}' names '{strange.text}', which is not among the rules", strange.span)
        return strange is None

    def _turns_back(self, number: int, rule: CorrelationRule, correlations: Mapping[int, CorrelationRule]) -> bool:
        """Does it refer to itself, through others?"""
        for reference in rule.rules:
            way = self._way(self.known[reference.text], number, correlations)
            if way is not None:
                through = ", ".join(f"'{self.name_of[n]}'" for n in way)
                tail = f", through {through}" if through else ""
                self._fault(f"rule '{self.name_of[number]}' refers to itself{tail}", reference.span)
                return True
        return False

    def _way(self, start: int, end: int, correlations: Mapping[int, CorrelationRule]) -> list[int] | None:
        """The shortest way along references: what lies before the end."""
        ways: list[list[int]] = [[start]]
        seen = {start}
        for way in ways:
            if way[-1] == end:
                return way[:-1]
            here = correlations.get(way[-1])
            for reference in () if here is None else here.rules:
                after = self.known.get(reference.text)
                if after is not None and after not in seen:
                    seen.add(after)
                    ways.append([*way, after])
        return None

    def _not_generated(self, alive: Iterable[int]) -> set[int]:
        """Rules that make no detections of their own (SIGMA-23), or are below the level that is asked for."""
        referred: dict[int, bool] = {}
        rules = [self.rules[n][1] for n in alive]
        for rule in (rule for rule in rules if isinstance(rule, CorrelationRule)):
            for reference in rule.rules:
                number = self.known[reference.text]
                referred[number] = referred.get(number, False) or rule.generate
        hidden = {number for number, generated in referred.items() if not generated}
        return hidden | {n for n, (_, rule) in enumerate(self.rules) if not is_of_level(rule.head.level, self.reading.level)}

    def _build(self, number: int, hidden: set[int], built: dict[int, Linked]) -> Linked:
        if number in built:
            return built[number]
        rule = self.rules[number][1]
        mapping = self.reading.mapping.text if self.reading.mapping is not None else ""
        name, shown = self.name_of[number], number not in hidden
        if isinstance(rule, DetectionRule):
            built[number] = Linked(name, rule, shown=shown, mapping=mapping)
            return built[number]
        numbers = [self.known[reference.text] for reference in rule.rules]
        distinct = list(dict.fromkeys(numbers))
        needs = tuple(self._build(n, hidden, built) for n in distinct)
        aliases = tuple(
            (alias.name, tuple((distinct.index(self.known[r.text]), attribute) for r, attribute in alias.fields))
            for alias in rule.aliases
        )
        built[number] = Linked(name, rule, needs, tuple(distinct.index(n) for n in numbers), aliases, shown, mapping)
        return built[number]


def _names(rules: Sequence[Rule], others: Collection[str]) -> dict[str, int]:
    """Names that are given, by other languages too, are taken first; titles get what is left."""
    names = {rule.head.name: number for number, rule in enumerate(rules) if rule.head.name is not None}
    taken = {*names, *others}
    for number, rule in enumerate(rules):
        if rule.head.name is None:
            name = _free(made_name(rule.head.title or ""), taken)
            taken.add(name)
            names[name] = number
    return names


def _free(name: str, taken: Collection[str]) -> str:
    if name not in taken:
        return name
    count = 2
    while f"{name}_{count}" in taken:
        count += 1
    return f"{name}_{count}"
