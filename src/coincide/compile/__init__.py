"""From the texts of all rule files to one graph of plans. The passes, in order:

parse       each file by its language: syntax, then names and types inside it
detectors   definitions as the graph sees them, numbered over all files
linked      a language that must know what all the others make looks at its detectors again
names       one name space of detectors
cycles      nobody consumes what it makes
stages      detectors that do not feed one another are planned together, so that they can share work
limits      what a file limits, no plan of any language sees, or makes, more of
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from coincide.compile.graph import check_cycles, feeds, stages
from coincide.detection.base import Detector, DetectorPlan
from coincide.errors import Diagnostic, RuleError, nearest
from coincide.languages.base import Language
from coincide.languages.registry import language_of
from coincide.source import SourceText, room_for_recursion

if TYPE_CHECKING:
    from coincide.lang.shared.eventsets import Limit


@dataclass(frozen=True)
class Compiled:
    """All that is known of the rules."""

    files: tuple[tuple[SourceText, Any], ...]
    detectors: tuple[Detector, ...]
    plans: tuple[DetectorPlan, ...]  # in the order of stages
    languages: dict[str, Language]
    limits: tuple[Limit, ...] = ()  # of all files, for all detectors
    sources: tuple[str, ...] = ()  # publishers that files name

    def plans_for(self, detectors: Sequence[Detector]) -> list[DetectorPlan]:
        """Plans for some of the detectors, none of which may be fed by one that is left out."""
        with room_for_recursion():
            return _plans(detectors, stages(detectors, feeds(detectors)), self.languages, self.limits)

    def warnings(self) -> list[Diagnostic]:
        found = [
            warning
            for name, language in self.languages.items()
            for warning in language.warnings([d for d in self.detectors if d.language == name])
        ]
        found += self.left_out()
        return found + [warning for limit in self.limits for warning in self._useless(limit)]

    def left_out(self) -> list[Diagnostic]:
        """Why definitions were left out of what was read, one for each."""
        files = [(language_of(source.name), source, file) for source, file in self.files]
        own = ((known, [(s, file) for language, s, file in files if language is known]) for known in self.languages.values())
        return [fault for language, some in own for fault in language.left_out(some)]

    def _useless(self, limit: Limit) -> Iterator[Diagnostic]:
        made = {output for d in self.detectors for output in d.outputs}
        read = [d.inputs.external for d in self.detectors]
        if limit.until is not None and limit.type not in made:
            message = f"nothing makes '{limit.type}': only detections can be limited 'until' something"
            yield Diagnostic(message, limit.span, "warning", nearest(limit.type, made), limit.type)
            return
        if limit.type not in made and not (None in read or any(limit.type in types for types in read if types is not None)):
            known = made.union(*(types for types in read if types is not None))
            message = f"nothing reads or makes '{limit.type}': the limit has no effect"
            yield Diagnostic(message, limit.span, "warning", nearest(limit.type, known), limit.type)


def compile_rules(sources: Sequence[SourceText]) -> Compiled:
    with room_for_recursion():
        parsed = _parsed(sources)
        languages = {language.name: language for language, _, _ in parsed}
        limits = tuple(dict.fromkeys(limit for language, _, file in parsed for limit in language.limits(file)))
        linked = _linked(_numbered(_detectors(parsed), languages), languages)
        numbered = _awaiting(linked, limits) if limits else linked
        _check_names(numbered)
        edges = feeds(numbered)
        check_cycles(numbered, edges)
        _check_limits(limits, numbered, stages(numbered, edges))
        planned = _plans(numbered, stages(numbered, edges), languages, limits)
    files = tuple((source, file) for _, source, file in parsed)
    publishers = tuple(name for language, _, file in parsed for name in language.sources(file))
    return Compiled(files, numbered, tuple(planned), languages, limits, publishers)


Parsed = list[tuple[Language, SourceText, Any]]


def _parsed(sources: Sequence[SourceText]) -> Parsed:
    parsed: Parsed = []
    taken: dict[str | None, Language] = {}
    for source in sources:
        language = language_of(source.name)
        file = language.parse(source)
        for definition in language.names(file):
            if definition.name in taken and not (taken[definition.name] is language and language.versioned):
                raise RuleError(definition)
            taken[definition.name] = language
        parsed.append((language, source, file))
    return parsed


def _detectors(parsed: Parsed) -> list[Detector]:
    """In order of files, though a language sees all its files at once."""
    of_file: dict[int, Sequence[Detector]] = {}
    languages = dict.fromkeys(language for language, _, _ in parsed)
    for language in sorted(languages, key=lambda language: language.names_last):
        numbers = [n for n, (other, _, _) in enumerate(parsed) if other is language]
        taken = frozenset(detector.name for detectors in of_file.values() for detector in detectors)
        files = [parsed[n][1:] for n in numbers]
        lists = language.detectors_beside(files, taken) if language.names_last else language.detectors(files)
        of_file.update(zip(numbers, lists, strict=True))
    return [detector for n in sorted(of_file) for detector in of_file[n]]


def _numbered(detectors: Sequence[Detector], languages: dict[str, Language]) -> list[Detector]:
    """In order, with the room that languages ask for before their first."""
    numbered: list[Detector] = []
    order, met = 0, set()
    for detector in detectors:
        if detector.language not in met:
            met.add(detector.language)
            if order > 0:
                order += languages[detector.language].room([d for d in detectors if d.language == detector.language])
        numbered.append(replace(detector, order=order))
        order += 1
    return numbered


def _check_names(detectors: Sequence[Detector]) -> None:
    """Some detectors are known only when all files are (Amit's templates make them): no other language may have their names."""
    taken: dict[str, str] = {}
    for detector in detectors:
        if taken.setdefault(detector.name, detector.language) != detector.language:
            raise RuleError(Diagnostic(f"{detector.kind} '{detector.name}' is already defined", detector.span))


def _linked(detectors: Sequence[Detector], languages: dict[str, Language]) -> tuple[Detector, ...]:
    found = {d.order: d for d in detectors}
    for name, language in languages.items():
        found.update((d.order, d) for d in language.linked([d for d in detectors if d.language == name], detectors))
    return tuple(found[order] for order in sorted(found))


def _plans(
    detectors: Sequence[Detector], stage: Sequence[int], languages: dict[str, Language], limits: Sequence[Limit]
) -> list[DetectorPlan]:
    planned: list[DetectorPlan] = []
    for number in range(max(stage, default=-1) + 1):
        here = [d for d, s in zip(detectors, stage, strict=True) if s == number]
        for name, language in languages.items():
            mine = [d for d in here if d.language == name]
            if mine:
                planned += language.plans(mine)
    return _limited(planned, limits, detectors) if limits else planned


def _limited(plans: Sequence[DetectorPlan], limits: Sequence[Limit], detectors: Sequence[Detector]) -> list[DetectorPlan]:
    from coincide.detection.limits import limited
    from coincide.detection.suppression import suppressed

    made = {output for detector in detectors for output in detector.outputs}
    return [suppressed(limited(plan, limits), limits, made) for plan in plans]


def _awaiting(detectors: Sequence[Detector], limits: Sequence[Limit]) -> tuple[Detector, ...]:
    from coincide.detection.suppression import awaiting

    return tuple(awaiting(detector, limits) for detector in detectors)


def _check_limits(limits: Sequence[Limit], detectors: Sequence[Detector], stage: Sequence[int]) -> None:
    """A limit stands behind the plan that makes something; what reads it inside that plan would not notice the limit."""
    for limit in limits:
        makers = [(d, s) for d, s in zip(detectors, stage, strict=True) if limit.type in d.outputs]
        for maker, level in makers:
            for reader, s in zip(detectors, stage, strict=True):
                if reader.language == maker.language and s == level and _reads_inside(reader, maker, limit.type):
                    message = f"'{reader.name}' uses '{limit.type}' as it is before the limit"
                    raise RuleError(Diagnostic(message, limit.span, hint=f"limit '{reader.name}' instead, or load it apart"))


def _reads_inside(reader: Detector, maker: Detector, type: str) -> bool:
    """Within one stage: a cycle of situations, or definitions of ECCO, which see more of each other than detections."""
    if type in reader.inputs.detections:
        return True
    return reader is not maker and reader.inputs.external is not None and type in reader.inputs.external
