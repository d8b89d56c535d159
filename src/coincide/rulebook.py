"""Rules that have been loaded: the front door for everything that is done with them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from coincide.access import allowing
from coincide.adapters.mapping import FieldMapping
from coincide.attachments import Attachments, loading
from coincide.collecting import without_collecting
from coincide.compile import Compiled, compile_rules
from coincide.compile.graph import feeds
from coincide.detection.base import Detector, DetectorPlan, in_tier
from coincide.errors import Diagnostic, InputError, RuleError, nearest
from coincide.lang.shared.about import LEVELS, About
from coincide.lang.shared.reads import Reads
from coincide.languages.registry import CASES, MODULES, ending_of, is_of, is_rule_file
from coincide.source import Reading, SourceText

RuleSource = str | PathLike[str] | SourceText

MAPPINGS = Path(__file__).parent / "mappings"
NAMED = 8
"""Detectors that a rulebook is called by."""


@dataclass(frozen=True, repr=False)
class Rulebook:
    """Rules of one or more files, checked and planned. Made by `load` or `loads`; it never changes."""

    compiled: Compiled
    attachments: Attachments = field(default_factory=dict, compare=False, repr=False)
    steps: int | None = None  # how many a row pattern may take from one row
    max_detections: int | None = None  # that a run in this process may make, without policies

    def __repr__(self) -> str:
        names = [detector.name for detector in self.detectors]
        more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
        return f"<Rulebook: {', '.join(names[:NAMED])}{more}>"

    def _repr_html_(self) -> str:
        """In a notebook, its drawings. What makes them stands above this module, so it is found by name when it is asked for."""
        html: str = import_module("coincide.display.rules").rules_html(self)
        return html

    @property
    def detectors(self) -> tuple[Detector, ...]:
        return self.compiled.detectors

    @property
    def files(self) -> tuple[tuple[SourceText, Any], ...]:
        """Each file with its language's definitions."""
        return self.compiled.files

    @cached_property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """What is accepted but most likely not meant."""
        return tuple(self.compiled.warnings())

    @cached_property
    def remarks(self) -> tuple[Diagnostic, ...]:
        """Why some may never detect anything: for who asks for a check."""
        return tuple(remark for d in self.detectors for remark in self.compiled.languages[d.language].remarks(d))

    @cached_property
    def streaming_warnings(self) -> tuple[Diagnostic, ...]:
        """Likewise, where the input has no end."""
        return tuple(w for d in self.detectors for w in self.compiled.languages[d.language].streaming_warnings(d))

    @property
    def endless_warnings(self) -> tuple[Diagnostic, ...]:
        """What would be said if these rules ran where the input has no end."""
        found = (*self.streaming_warnings, *self.endless_faults)
        return tuple(replace(d, message=_of_streams(d.message), severity="warning") for d in found)

    @cached_property
    def reads(self) -> tuple[Reads, ...]:
        """What each detector reads of events, and where it says so."""
        return tuple(self.compiled.languages[d.language].reads(d) for d in self.detectors)

    @cached_property
    def about(self) -> tuple[About, ...]:
        """What each detector says of itself."""
        return tuple(self.compiled.languages[d.language].about(d) for d in self.detectors)

    @cached_property
    def attributes(self) -> frozenset[str] | None:
        """Attributes of events that any detector reads or hands on; None: all."""
        columns = [plan.columns for plan in self.compiled.plans]
        return None if None in columns else frozenset().union(*(some for some in columns if some is not None))

    @cached_property
    def reads_untyped(self) -> bool:
        """Does a language read records that have no type?"""
        return any(language.untyped for language in self.compiled.languages.values())

    @property
    def names_policies(self) -> bool:
        """Does any definition say under which policy it is detected?"""
        return any(detector.policy is not None for detector in self.detectors)

    def fields(self, mapping: FieldMapping) -> FieldMapping:
        """How events are read for these rules."""
        return replace(mapping, untyped=True) if self.reads_untyped else mapping

    def check_endless(self) -> None:
        """RuleError, if a rule cannot run where the input has no end."""
        for fault in self.endless_faults:
            raise RuleError(fault)

    @property
    def endless_faults(self) -> tuple[Diagnostic, ...]:
        """Why rules cannot run where the input has no end."""
        return tuple(f for d in self.detectors for f in self.compiled.languages[d.language].endless_faults(d))

    def only(self, orders: Collection[int]) -> Rulebook:
        """The same with some of the detectors, by their numbers; none of these may be fed by one that is left out."""
        chosen = tuple(detector for detector in self.detectors if detector.order in orders)
        return replace(self, compiled=replace(self.compiled, detectors=chosen, plans=tuple(self.compiled.plans_for(chosen))))

    def needed_for(self, orders: Collection[int]) -> Rulebook:
        """The same with some of the detectors, by their numbers, and all that feed them."""
        edges = feeds(self.detectors)
        needed = {number for number, detector in enumerate(self.detectors) if detector.order in orders}
        while more := {n for n, readers in edges.items() if n not in needed and not needed.isdisjoint(readers)}:
            needed |= more
        return self.only({self.detectors[number].order for number in needed})

    @cached_property
    def independent_names(self) -> tuple[str, ...]:
        """Attributes on whose values all that its detectors do is independent."""
        languages = self.compiled.languages
        if any(d.partition is None or languages[d.language].several_keys for d in self.detectors):
            return ()
        return tuple(sorted(set.intersection(*(set(d.partition or ()) for d in self.detectors))))

    def plans(
        self, tier: str = "interpreter", size: int = 0, is_ready: Callable[[str], bool] | None = None
    ) -> list[DetectorPlan]:
        """The graph's plans in the tier asked for, or that suits inputs of `size` events; a plan without a kernel tier, or
        whose loop is not ready, is interpreted."""
        with without_collecting():
            plans = [p if self.steps is None else p.with_steps(self.steps) for p in self.compiled.plans]
            return in_tier(plans, tier, size, is_ready)


def _of_streams(message: str) -> str:
    return message if "stream" in message else f"on a stream: {message}"


def load(
    *paths: RuleSource,
    allow_paths: Iterable[str | PathLike[str]] = (),
    allow_db: bool = False,
    sigma_mapping: RuleSource | None = None,
    keep_going: bool = False,
    level: str | None = None,
    pipeline: str | Sequence[str] | None = None,
) -> Rulebook:
    """Rules from files, loaded together in the order given; of a folder, all rule files below it. Raises RuleError at the
    first error.

    For Sigma, `sigma_mapping` is a mapping file, or the name of one of the package (sysmon, ecs …). A `pipeline` is one
    of pySigma's (the extra `sigma`), by its name or its file, or several: rules are loaded as it changes them. For Sigma and
    EQL, with `keep_going` rules with errors are left out and reported as warnings; rules below a `level` make no detections.

    What rules name (tables, zones) must be regular files below the folder of the file that names them, or in `allow_paths`;
    databases are asked only with `allow_db`."""
    with allowing(allow_paths, allow_db), loading() as attachments, without_collecting():
        mapping = None if sigma_mapping is None else _read(_mapping(sigma_mapping))
        given = Reading(mapping, keep_going, _level(level))
        texts = _texts(paths, mapping)
        if pipeline:
            texts = _through(texts, [pipeline] if isinstance(pipeline, str) else pipeline, given)
        sources = [_reading(source, given) for source in texts]
        return Rulebook(compile_rules(sources), attachments)


def rule_files(paths: Iterable[RuleSource], sigma_mapping: RuleSource | None = None) -> list[SourceText]:
    """The texts that `load` would read. Raises RuleError."""
    return _texts(paths, None if sigma_mapping is None else _read(_mapping(sigma_mapping)))


def _texts(paths: Iterable[RuleSource], mapping: SourceText | None) -> list[SourceText]:
    return [_read(file) for path in paths for file in _files(path, mapping)]


def _reading(source: SourceText, given: Reading) -> SourceText:
    """A text that says itself how it is to be read has its way."""
    return source if given == Reading() or source.reading != Reading() else replace(source, reading=given)


def _through(files: Sequence[SourceText], pipelines: Sequence[str], given: Reading) -> list[SourceText]:
    """Files of Sigma as pipelines make them, all at once: rules refer to one another."""
    from coincide.lang.sigma.pipeline import piped

    if given.mapping is not None:
        raise RuleError(Diagnostic("a pipeline takes the place of a mapping file of Sigma: give one of them"))
    of_sigma = [n for n, source in enumerate(files) if is_of("sigma", source.name)]
    made = dict(zip(of_sigma, piped([files[n] for n in of_sigma], pipelines, given), strict=True))
    return [made.get(n, source) for n, source in enumerate(files)]


def _level(level: str | None) -> str | None:
    if level is None or level in LEVELS:
        return level
    raise RuleError(Diagnostic(f"unknown level '{level}': one of {', '.join(LEVELS)}", hint=nearest(level, LEVELS)))


def mapping_path(name: str | PathLike[str]) -> Path:
    """Of a mapping file, or of one that comes with the package."""
    own = MAPPINGS / f"{fspath(name)}.yml"
    return own if own.exists() and not Path(name).exists() else Path(name)


def known_mapping(name: str | PathLike[str]) -> Path:
    """The same, if there is one. Raises InputError."""
    found = mapping_path(name)
    if not found.exists():
        own = sorted(file.stem for file in MAPPINGS.glob("*.yml"))
        hint = nearest(fspath(name), own) or f"mappings that are here already: {', '.join(own)}"
        raise InputError(Diagnostic(f"{fspath(name)}: there is no such mapping file", hint=hint))
    return found


def _mapping(name: RuleSource) -> RuleSource:
    return name if isinstance(name, SourceText) else known_mapping(name)


def _files(path: RuleSource, mapping: SourceText | None) -> list[RuleSource]:
    """A file; of a folder, all that are rules by their ending, in order of path."""
    if isinstance(path, SourceText) or not Path(path).is_dir():
        return [path]
    other = None if mapping is None else Path(mapping.name).resolve()
    below = (file for file in Path(path).rglob("*") if is_rule_file(file.name) and not file.name.endswith(CASES))
    found = sorted((f for f in below if f.is_file() and f.resolve() != other), key=lambda f: f.relative_to(path).as_posix())
    if not found:
        raise RuleError(Diagnostic(f"{fspath(path)}: there are no rule files in this folder (endings: {', '.join(MODULES)})"))
    return [str(file) for file in found]


def loads(
    text: str,
    language: str = "ecl",
    name: str = "rules",
    *,
    allow_paths: Iterable[str | PathLike[str]] = (),
    allow_db: bool = False,
) -> Rulebook:
    """Rules from a text; `language` is a language's name (ecl, amit, opera, pretty, ecco, cdl) or a file ending. They may read
    what `load` says; their folder is that of `name`."""
    return load(SourceText(name + ending_of(language), text), allow_paths=allow_paths, allow_db=allow_db)


def _read(path: RuleSource) -> SourceText:
    if isinstance(path, SourceText):
        return path
    name = fspath(path)
    try:
        return SourceText(name, Path(name).read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise RuleError(Diagnostic(f"{name}: not a text file (byte {error.start + 1} is not UTF-8)")) from error
    except OSError as error:
        raise RuleError(Diagnostic(f"{name}: {error.strerror or error}")) from error


def rulebook(rules: Rulebook | RuleSource | Sequence[RuleSource]) -> Rulebook:
    """Whatever names rules, as a rulebook."""
    if isinstance(rules, Rulebook):
        return rules
    if isinstance(rules, (str, PathLike, SourceText)):
        return load(rules)
    return load(*rules)
