"""What a command is, and the options that several of them have."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from inspect import cleandoc
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from coincide.adapters.mapping import FieldMapping
    from coincide.errors import Diagnostic
    from coincide.rulebook import Rulebook

Given = argparse.Namespace
Add = Callable[[argparse.ArgumentParser], None]


@dataclass(frozen=True)
class Command:
    """A command of the command line. The first line of its description is what the list of commands shows."""

    name: str
    description: str
    arguments: Add
    action: Callable[[Given], int]

    def add_to(self, commands: Any) -> None:
        text = cleandoc(self.description)
        summary, layout = text.splitlines()[0].rstrip("."), argparse.RawDescriptionHelpFormatter
        parser = commands.add_parser(self.name, help=summary, description=text, formatter_class=layout)
        self.arguments(parser)
        _access_arguments(parser)
        parser.set_defaults(command=self.action)


def _access_arguments(parser: argparse.ArgumentParser) -> None:
    """Every command loads rules."""
    group = parser.add_argument_group("what rules may read")
    text = "rules may read files below DIR, too (default: below their own folder)"
    group.add_argument("--allow-path", metavar="DIR", action="append", default=[], help=text)
    group.add_argument("--allow-db", action="store_true", help="rules may ask the databases that they name")


def rules_argument(parser: argparse.ArgumentParser, nargs: str = "+") -> None:
    text = "rule files, loaded together in this order; a folder: all rules in it"
    parser.add_argument("rules", nargs=nargs, metavar="RULES", help=text)
    group = parser.add_argument_group("rules of Sigma and of Elastic")
    text = "log sources and fields: a mapping file, or one that is here already (ecs, sysmon, windows-security, auditd …)"
    group.add_argument("--sigma-mapping", metavar="FILE", help=text)
    text = "change rules by a processing pipeline of pySigma (the extra `sigma`): its name or its file; may be given again"
    group.add_argument("--pipeline", metavar="NAME", action="append", help=text)
    group.add_argument("--keep-going", action="store_true", help="leave out rules with errors, and tell them as warnings")
    group.add_argument("--level", metavar="LEVEL", help="only detections of this level or above: low, medium, high, critical")


def load_rules(given: Given) -> Rulebook:
    """The rules that a command is given, read as its options say."""
    from coincide.errors import RuleError
    from coincide.rulebook import load

    try:
        return load(*given.rules, **loading_options(given))
    except RuleError as error:
        raise RuleError(*(_with_advice(given, diagnostic) for diagnostic in error.diagnostics)) from error


def _with_advice(given: Given, diagnostic: Diagnostic) -> Diagnostic:
    """Of a folder of rules that others have written, one that cannot be read is no reason to stop."""
    from dataclasses import replace
    from pathlib import Path

    left_out = diagnostic.span is not None and diagnostic.span.source.name.endswith((".yml", ".yaml", ".eql", ".toml"))
    if given.keep_going or not left_out or not any(Path(path).is_dir() for path in given.rules):
        return diagnostic
    advice = "--keep-going leaves out rules with errors"
    return replace(diagnostic, hint=advice if diagnostic.hint is None else f"{diagnostic.hint} ({advice})")


def loading_options(given: Given) -> dict[str, Any]:
    """What `load` is to be told, but for what rules may read."""
    other = None if given.pipeline else getattr(given, "mapping", None)  # one file may serve both
    mapping, pipeline = given.sigma_mapping or other, given.pipeline
    return {"sigma_mapping": mapping, "keep_going": given.keep_going, "level": given.level, "pipeline": pipeline}


def engine_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--engine", default="embedded", metavar="NAME", help="embedded (default), spark or spark-streaming")
    parser.add_argument("--tier", default="auto", metavar="NAME", help="auto (default), interpreter or kernel (compiled)")


def field_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("fields of the events")
    group.add_argument("--mapping", metavar="FILE", help="a mapping of fields (YAML), such as `coincide guess` proposes")
    for field in ("type", "time", "id", "source"):
        group.add_argument(f"--{field}-field", metavar="FIELD", help=f"the field that is the {field} (default: {field})")
    group.add_argument("--time-unit", metavar="UNIT", help="unit of times that are plain numbers: s, ms (default), us, ns")
    group.add_argument("--type", metavar="NAME", help="all events are of this type; no field holds it")
    text = "types of CSV columns: text, number or boolean, as in ip=text,zip=text"
    group.add_argument("--types", metavar="NAME=TYPE,…", action="append", default=[], help=text)


def field_mapping(given: Given) -> FieldMapping:
    """What the mapping file says, and what options say otherwise."""
    from dataclasses import replace

    from coincide.adapters.mapping import DEFAULT

    mapping = DEFAULT
    file = given.mapping or getattr(given, "sigma_mapping", None)
    if file is not None:
        from coincide.adapters.mappingfile import load_mapping
        from coincide.rulebook import known_mapping

        mapping = load_mapping(known_mapping(file))
    fields = {
        "type": given.type_field,
        "time": given.time_field,
        "id": given.id_field,
        "source": given.source_field,
        "unit": given.time_unit,
        "constant_type": given.type,
    }
    types = {**mapping.column_types, **_column_types(given.types)}
    return replace(mapping, types=tuple(types.items()), **{name: value for name, value in fields.items() if value is not None})


def _column_types(options: list[str]) -> dict[str, str]:
    from coincide.errors import CoincideError

    found = {}
    for entry in (entry for option in options for entry in option.split(",") if entry):
        name, equals, kind = entry.rpartition("=")
        if not equals:
            raise CoincideError(f"--types: '{entry}' is not NAME=TYPE")
        found[name] = kind
    return found


def check_engine(given: Given) -> None:
    from coincide.engines.choice import ENGINES, TIERS, check_name

    check_name("engine", given.engine, ENGINES)
    check_name("tier", given.tier, TIERS)


def part_rules_from_events(given: Given) -> None:
    """`--events day.jsonl rules.ecl`: the option takes all that follows, but the ending tells what is what."""
    from coincide.languages.registry import MODULES

    endings = tuple(MODULES)
    given.rules += [path for path in given.events if path.endswith(endings)]
    given.events = [path for path in given.events if not path.endswith(endings)]
