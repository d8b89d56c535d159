"""Which files are rules: some endings are those of other files, too."""

from __future__ import annotations

import re

from coincide.languages.registry import CASES, is_rule_file, language_name
from coincide.source import SourceText

SHARED = (".yml", ".yaml", ".toml")
SIGNS = {"sigma": re.compile(r"^(?:detection|correlation)\s*:", re.MULTILINE), "eql": re.compile(r"^\[rule\]", re.MULTILINE)}
BEGUN = {**SIGNS, "sigma": re.compile(r"^(?:title|logsource|detection|correlation)\s*:", re.MULTILINE)}


def is_rules(source: SourceText) -> bool:
    """Is this a rule file, and not a YAML or TOML file for something else?"""
    return _shows(source, SIGNS)


def may_be_rules(source: SourceText) -> bool:
    """Likewise, or one that has been begun."""
    return _shows(source, BEGUN)


def _shows(source: SourceText, signs: dict[str, re.Pattern[str]]) -> bool:
    if not is_rule_file(source.name) or source.name.endswith(CASES):
        return False
    sign = signs.get(language_name(source.name))
    return sign is None or not source.name.endswith(SHARED) or sign.search(source.text) is not None
