"""Rule files that belong together, and what is known of their events. Texts that are open in the editor are as it has them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from os import fspath, walk
from pathlib import Path
from typing import Any

from coincide.editing import Names, is_rules, joined, names_in
from coincide.errors import CoincideError
from coincide.languages.registry import CASES, is_rule_file
from coincide.rulebook import mapping_path
from coincide.source import SourceText

SETTINGS_FILE = "coincide.json"
MANY = 500
"""Rule files of a folder that are read."""
PASSED_OVER = frozenset({"node_modules", "__pycache__", "venv", "build", "dist"})

Stamp = tuple[int, int]


@dataclass(frozen=True)
class Settings:
    """Samples of events or schemas, and the mapping file of Sigma's rules. Paths are relative to `base`."""

    events: tuple[str, ...] = ()
    mapping: str | None = None
    base: Path = field(default_factory=Path)

    def paths(self) -> list[Path]:
        return [self.base / path for path in self.events]


def settings_of(given: object, base: Path) -> Settings:
    """Whatever an editor or a file says; what is not a setting is passed over."""
    options: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
    events, mapping = options.get("events"), options.get("mapping")
    listed = [events] if isinstance(events, str) else events if isinstance(events, list) else []
    samples = tuple(path for path in listed if isinstance(path, str) and path)
    return Settings(samples, mapping if isinstance(mapping, str) and mapping else None, base)


class Folders:
    """Reads files once for each time that they change. `report` hears of files that cannot be read."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self.opened: dict[str, SourceText] = {}
        self.settings = Settings()
        self._report = report
        self._texts: dict[str, tuple[Stamp, SourceText]] = {}
        self._names: dict[str, tuple[Stamp, Names]] = {}

    def text(self, path: str) -> SourceText | None:
        if path in self.opened:
            return self.opened[path]
        stamp = _stamp(Path(path))
        if stamp is None:
            return None
        known = self._texts.get(path)
        if known is None or known[0] != stamp:
            try:
                known = (stamp, SourceText(path, Path(path).read_text(encoding="utf-8")))
            except (OSError, UnicodeDecodeError):
                return None
            self._texts[path] = known
        return known[1]

    def root(self, path: str) -> Path:
        """The folder whose rules are loaded together: the nearest one with a settings file, or else the file's own."""
        own = Path(path).parent
        return next((folder for folder in (own, *own.parents) if (folder / SETTINGS_FILE).is_file()), own)

    def beside(self, path: str) -> Iterator[SourceText]:
        """The other rules that are loaded together with those of a file. Nothing is read before it is asked for."""
        root = self.root(path)
        found = dict.fromkeys(name for name in self.opened if Path(name).is_relative_to(root))
        for name in (*found, *(file for file in _rule_files(root) if file not in found)):
            text = None if name == path else self.text(name)
            if text is not None and is_rules(text):
                yield text

    def names(self, path: str) -> Names:
        """Learnt from what the settings name."""
        samples = dict.fromkeys(sample.resolve() for settings in self._of(path) for sample in settings.paths())
        return joined(map(self._learnt, samples))

    def mapping(self, path: str) -> SourceText | None:
        """The mapping file of Sigma's rules."""
        for settings in self._of(path):
            if settings.mapping is not None:
                here = settings.base / settings.mapping
                return self.text(fspath(here if here.exists() else mapping_path(settings.mapping)))
        return None

    def _of(self, path: str) -> Iterator[Settings]:
        """Those of the folder, then those of the editor."""
        file = self.root(path) / SETTINGS_FILE
        try:
            yield settings_of(json.loads(file.read_text(encoding="utf-8")), file.parent)
        except FileNotFoundError:
            pass
        except (OSError, ValueError) as error:
            self._report(f"{file}: {error}")
        yield self.settings

    def _learnt(self, sample: Path) -> Names:
        path, stamp = fspath(sample), _stamp(sample) or (0, 0)
        known = self._names.get(path)
        if known is None or known[0] != stamp:
            known = self._names[path] = (stamp, self._read(path))
        return known[1]

    def _read(self, path: str) -> Names:
        try:
            return names_in(path)
        except CoincideError as error:
            self._report(f"no names can be learnt: {error}")
            return Names()


def _stamp(path: Path) -> Stamp | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def _rule_files(root: Path) -> Iterable[str]:
    found: list[str] = []
    for folder, inner, files in walk(root):
        inner[:] = sorted(name for name in inner if name not in PASSED_OVER and not name.startswith("."))
        found += [fspath(Path(folder) / name) for name in sorted(files) if is_rule_file(name) and not name.endswith(CASES)]
        if len(found) >= MANY:
            break
    return found[:MANY]
