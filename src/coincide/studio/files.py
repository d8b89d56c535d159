"""The files of a session: rules and events below one folder, and texts that were changed and not saved yet."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from coincide.adapters.files import CompleteFile, check_writable
from coincide.adapters.read import ENDINGS, PACKED
from coincide.errors import CoincideError, InputError
from coincide.languages.registry import CASES, is_rule_file
from coincide.rulebook import rule_files
from coincide.source import SourceText

MOST = 2_000
"""Files that are listed."""
DEEPEST = 8
LARGEST = 4 << 20
"""Bytes of a file of rules that is shown."""


class Files:
    """Names are paths below the folder, with slashes; no other file is read or written."""

    def __init__(self, rules: Sequence[str], sigma_mapping: str | None = None) -> None:
        given = [Path(name) for name in rules]
        self.root = _common(given)
        self.drafts: dict[str, str] = {}
        texts = rule_files(rules, sigma_mapping) if rules else []
        self.loaded = [self.name_of(Path(text.name)) for text in texts]

    def name_of(self, path: Path) -> str:
        return path.resolve().relative_to(self.root).as_posix()

    def path(self, name: str) -> Path:
        """Raises InputError for what is not below the folder, links that lead elsewhere too."""
        hidden = any(part.startswith(".") for part in Path(name).parts)
        path = self.root if "\0" in name else (self.root / name).resolve()
        if hidden or path == self.root or not path.is_relative_to(self.root):
            raise InputError(f"'{name}' is not below the folder that is open")
        return path

    def rule_path(self, name: str) -> Path:
        path = self.path(name)
        if not is_rule_file(name):
            raise InputError(f"'{name}' is not a file of rules")
        return path

    def name_in(self, file: str) -> str:
        """Of a file as diagnostics have it."""
        return file.removeprefix(f"{self.root.as_posix()}/")

    # Texts.

    def text(self, name: str) -> str:
        return self.drafts[name] if name in self.drafts else self.saved(name)

    def saved(self, name: str) -> str:
        path = self.rule_path(name)
        try:
            if path.stat().st_size > LARGEST:
                raise InputError(f"'{name}' is too large to be edited here")
            return path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise InputError(f"'{name}' is not a text file") from error
        except OSError as error:
            raise InputError(f"cannot read '{name}': {error.strerror or error}") from error

    def change(self, name: str, text: str) -> None:
        """The text as it is in an editor."""
        path = self.rule_path(name)
        if path.exists() and self.saved(name) == text:
            self.drafts.pop(name, None)
        else:
            self.drafts[name] = text

    def save(self, name: str) -> None:
        path = self.rule_path(name)
        if name in self.drafts:
            check_writable(path)
            with writing(name), CompleteFile(path) as file:
                file.stream.write(self.drafts[name].encode())
            del self.drafts[name]

    def create(self, name: str) -> None:
        """An empty file of rules, that is loaded."""
        path = self.rule_path(name)
        if path.exists() or name in self.drafts:
            raise InputError(f"'{name}' already exists")
        if not path.parent.is_dir():
            raise InputError(f"there is no folder '{path.parent.name}'")
        self.drafts[name] = ""
        self.load(name, True)

    def load(self, name: str, loaded: bool) -> None:
        """Whether a file is among those that are run."""
        self.rule_path(name)
        if loaded and name not in self.loaded:
            self.loaded.append(name)
        elif not loaded and name in self.loaded:
            self.loaded.remove(name)

    def sources(self, changed: tuple[str, str] | None = None) -> list[SourceText]:
        """The files that are loaded, as they are in the editor; one of them may be given otherwise. Empty ones say nothing."""
        texts = {name: self.text(name) for name in self.loaded}
        if changed is not None and changed[0] in texts:
            texts[changed[0]] = changed[1]
        return [self.source(name, text) for name, text in texts.items() if text.strip()]

    def source(self, name: str, text: str) -> SourceText:
        self.rule_path(name)
        return SourceText(str(self.root / name), text)

    # What there is.

    def listed(self) -> list[dict[str, object]]:
        found = [*self._below(self.root, DEEPEST)]
        names = {name for name, _ in found}
        found += [(name, "rules") for name in (*self.loaded, *self.drafts) if name not in names]
        return [
            {"name": name, "kind": kind, "loaded": name in self.loaded, "changed": name in self.drafts}
            for name, kind in sorted(set(found))[:MOST]
        ]

    def _below(self, folder: Path, depth: int) -> Iterator[tuple[str, str]]:
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError:
            return
        for entry in entries[:MOST]:
            if entry.name.startswith((".", "__")) or entry.name == "node_modules":
                continue
            if entry.is_dir(follow_symlinks=False):
                if depth:
                    yield from self._below(Path(entry.path), depth - 1)
            elif (kind := kind_of(entry.name)) is not None:
                yield Path(entry.path).relative_to(self.root).as_posix(), kind


def kind_of(name: str) -> str | None:
    """Rules, events, or neither."""
    if is_rule_file(name) and not name.endswith(CASES):
        return "rules"
    plain = name.lower()
    for packing in PACKED:
        plain = plain.removesuffix(packing)
    return "events" if plain.endswith(ENDINGS) else None


def _common(given: Iterable[Path]) -> Path:
    """The innermost folder that has all of them."""
    folders = [path.resolve() if path.is_dir() else path.resolve().parent for path in given]
    return Path(os.path.commonpath(folders)) if folders else Path.cwd().resolve()


@contextmanager
def writing(name: str) -> Iterator[None]:
    """Failures to write, as errors that name the file."""
    try:
        yield
    except OSError as error:
        raise CoincideError(f"cannot write '{name}': {error.strerror or error}") from error
