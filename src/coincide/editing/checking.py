"""What is wrong with a text: the same as `coincide check` says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from coincide.editing.files import is_rules
from coincide.errors import CoincideError, Diagnostic
from coincide.rulebook import Rulebook, load
from coincide.source import SourceText


def diagnostics(source: SourceText, others: Iterable[SourceText] = (), mapping: SourceText | None = None) -> list[Diagnostic]:
    """Errors and warnings of one text. A text that cannot stand alone is looked at together with the `others`, as far as these
    can be loaded. `mapping` is the mapping file of Sigma's rules."""
    if not is_rules(source):
        return []
    try:
        return _warnings(source, _loaded([source], mapping))
    except CoincideError as error:
        alone = list(error.diagnostics)
    beside = [other for other in others if other.name != source.name and is_rules(other)]
    return _together(source, beside, mapping, alone) if beside else alone


def _together(
    source: SourceText, others: Sequence[SourceText], mapping: SourceText | None, alone: list[Diagnostic]
) -> list[Diagnostic]:
    """Others that are wrong are left out, one after another; what is wrong with this one is told."""
    left = list(others)
    while True:
        try:
            return _warnings(source, _loaded([*left, source], mapping))
        except CoincideError as error:
            blamed = {d.span.file for d in error.diagnostics if d.span is not None}
            if not blamed or source.name in blamed:
                return list(error.diagnostics)
        sound = [other for other in left if other.name not in blamed]
        if not sound or len(sound) == len(left):
            return alone
        left = sound


def _loaded(sources: Sequence[SourceText], mapping: SourceText | None) -> Rulebook:
    return load(*sources, sigma_mapping=mapping)


def _warnings(source: SourceText, book: Rulebook) -> list[Diagnostic]:
    warnings = (*book.warnings, *book.remarks, *book.endless_warnings)
    return [diagnostic for diagnostic in warnings if diagnostic.span is None or diagnostic.span.file == source.name]
