"""The languages, by the endings of their files. A language is imported with the first file that is written in it."""

from __future__ import annotations

from importlib import import_module

from coincide.errors import Diagnostic, RuleError
from coincide.languages.base import Language

MODULES = {
    ".cdl.xml": "coincide.languages.cdl",
    ".cdl.yaml": "coincide.languages.cdl",
    ".amit.xml": "coincide.languages.amit",
    ".amit.yaml": "coincide.languages.amit",
    ".ecl": "coincide.languages.ecl",
    ".ce": "coincide.languages.opera",
    ".say": "coincide.languages.pretty",
    ".ecco": "coincide.languages.ecco",
    ".mr.sql": "coincide.languages.matchrecognize",
    ".yml": "coincide.languages.sigma",
    ".yaml": "coincide.languages.sigma",
    ".eql": "coincide.languages.eql",
    ".toml": "coincide.languages.eql",
}
"""The first ending that fits counts."""

CASES = (".test.yaml", ".test.yml")
"""Files of cases, which test rules and are none, though they may stand beside them."""


def language_of(path: str) -> Language:
    for ending, module in MODULES.items():
        if path.endswith(ending):
            language: Language = import_module(module).LANGUAGE
            return language
    endings = ", ".join(MODULES)
    raise RuleError(Diagnostic(f"{path}: not a rule file that is known (endings: {endings})"))


def is_rule_file(path: str) -> bool:
    return path.endswith(tuple(MODULES))


def language_name(path: str) -> str:
    """Of a rule file, by its ending: ecl, pretty, matchrecognize …; of any other, nothing."""
    return next((module.rpartition(".")[2] for ending, module in MODULES.items() if path.endswith(ending)), "")


def is_of(language: str, path: str) -> bool:
    """Is this a file of the language, by its ending?"""
    return language_name(path) == language and not path.endswith(CASES)


def ending_of(language: str) -> str:
    """The first file ending of a language, by its name; an ending stands for itself."""
    ending = f".{language.lstrip('.')}"
    return ending if ending in MODULES else next((e for e, m in MODULES.items() if m.rpartition(".")[2] == language), ending)
