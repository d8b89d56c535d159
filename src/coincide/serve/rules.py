"""The rules of a service: files that may be changed, by whoever edits them or over HTTP, and rules that may be disabled.

The files are what counts: what is put over HTTP is written to them, so that a restart finds it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from coincide.adapters.files import CompleteFile
from coincide.detection.base import Detector
from coincide.errors import CoincideError, Diagnostic, RuleError, nearest
from coincide.languages.registry import is_rule_file
from coincide.rulebook import Rulebook, load, rule_files
from coincide.source import SourceText

Options = Mapping[str, Any]
"""How rule files are read: what `load` is told."""


@dataclass(frozen=True)
class RuleSet:
    """Texts that were loaded together, and which of their rules are disabled. It never changes."""

    texts: tuple[SourceText, ...]
    options: Options = field(default_factory=dict)
    disabled: frozenset[str] = frozenset()
    book: Rulebook = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        book = load(*self.texts, **self.options)
        book.check_endless()
        object.__setattr__(self, "book", book)

    @cached_property
    def running(self) -> Rulebook:
        """The rules that are enabled, and those that they need."""
        enabled = {detector.order for detector in self.book.detectors if detector.name not in self.disabled}
        return self.book.needed_for(enabled) if self.disabled else self.book

    @cached_property
    def silent(self) -> frozenset[int]:
        """Of those that run, the numbers of the ones that are disabled: others need what they make."""
        return frozenset(detector.order for detector in self.running.detectors if detector.name in self.disabled)

    @property
    def names(self) -> list[str]:
        return list(dict.fromkeys(detector.name for detector in self.book.detectors))

    def with_texts(self, texts: Iterable[SourceText]) -> RuleSet:
        return RuleSet(tuple(texts), self.options, self.disabled)

    @property
    def under_policies(self) -> bool:
        return self.book.names_policies

    def with_text(self, text: SourceText) -> RuleSet:
        """A file replaced, or added."""
        others = {**{own.name: own for own in self.texts}, text.name: text}
        return self.with_texts(others.values())

    def with_disabled(self, disabled: frozenset[str]) -> RuleSet:
        changed = RuleSet.__new__(RuleSet)  # the same texts: they are not read again
        for name, value in (*vars(self).items(), ("disabled", disabled)):
            if name not in ("running", "silent"):
                object.__setattr__(changed, name, value)
        return changed

    def listed(self) -> list[dict[str, Any]]:
        return [self._entry(detector) for detector in self.book.detectors]

    def _entry(self, detector: Detector) -> dict[str, Any]:
        return {
            "name": detector.name,
            "kind": detector.kind,
            "language": detector.language,
            "file": None if detector.span is None else detector.span.file,
            "line": None if detector.span is None else detector.span.line,
            "makes": list(detector.outputs),
            "enabled": detector.name not in self.disabled,
            "digest": detector.digest,
        }


class RuleFiles:
    """Finds changes of the files, and makes some. Which rules are disabled, and which files were added, is kept if there is a
    folder for that."""

    def __init__(self, names: Sequence[str], options: Options, folder: Path | None = None) -> None:
        self._names, self._options = names, options
        self._file = None if folder is None else folder / "rules.json"
        stored = _decoded(self._file) if self._file is not None and self._file.exists() else Kept()
        self._added = stored.added
        self.rules = RuleSet(tuple(self._read()), options, frozenset(stored.disabled))
        self._refused: tuple[SourceText, ...] | None = None

    def changed(self) -> RuleSet | None:
        """The rules of the files as they are now, if that is new. Raises RuleError; the same mistake is told once."""
        texts = tuple(self._read())
        if texts in (self.rules.texts, self._refused):
            return None
        self._refused = texts
        return self.rules.with_texts(texts)

    def text(self, name: str) -> SourceText | None:
        return next((text for text in self.rules.texts if text.name == name), None)

    def named(self, name: str, text: str) -> SourceText:
        """A file that there is, or a new one beside the first. Raises RuleError for a name that cannot be one."""
        if self.text(name) is not None:
            return SourceText(name, text)
        if not is_rule_file(name) or Path(name).name != name or name.startswith(".") or "\0" in name:
            known = [own.name for own in self.rules.texts]
            raise RuleError(Diagnostic(f"'{name}' is not a file of rules here, nor the name of one", hint=nearest(name, known)))
        first = Path(self._names[0])
        return SourceText(str((first if first.is_dir() else first.parent) / name), text)

    def take(self, rules: RuleSet) -> None:
        """These run now."""
        self.rules, self._refused = rules, None
        if self._file is not None:
            with CompleteFile(self._file) as file:
                file.stream.write(msgspec.json.encode(Kept(sorted(rules.disabled), self._added)))

    def write(self, text: SourceText) -> None:
        """Raises CoincideError if the file cannot be written."""
        try:
            with CompleteFile(text.name) as file:
                file.stream.write(text.text.encode())
        except OSError as error:
            raise CoincideError(f"cannot write '{text.name}': {error.strerror or error}") from error
        if text.name not in [own.name for own in self.rules.texts]:
            self._added.append(text.name)

    def _read(self) -> list[SourceText]:
        named = [*self._names, *(name for name in self._added if os.path.exists(name))]
        return list({text.name: text for text in rule_files(named, self._options.get("sigma_mapping"))}.values())


class Kept(msgspec.Struct):
    """What is kept of the rules beside their files."""

    disabled: list[str] = []
    added: list[str] = []


def _decoded(path: Path) -> Kept:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Kept)
    except msgspec.MsgspecError as error:
        raise CoincideError(f"'{path}' does not say which rules are disabled: {error}") from error
