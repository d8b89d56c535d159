"""MITRE ATT&CK: which techniques, of which tactics, rules are about, by their tags (`attack.execution`, `attack.t1059.001`)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from coincide.report.findings import Hits

TACTICS = (
    "reconnaissance", "resource-development", "initial-access", "execution", "persistence", "privilege-escalation",
    "defense-evasion", "stealth", "defense-impairment", "credential-access", "discovery", "lateral-movement", "collection",
    "command-and-control", "exfiltration", "impact",
)  # fmt: skip
"""In the order of an attack; the matrix has had `stealth` and `defense-impairment` in place of `defense-evasion` since 2026."""
OTHER = "no tactic given"

TECHNIQUE = re.compile(r"t\d{4}(?:\.\d{3})?")
NO_TACTIC = re.compile(r"[tsgcm]\d{4}.*|ta\d{4}")
"""Techniques, software, groups, campaigns, mitigations; tactics by number."""


@dataclass
class Cell:
    """A technique below a tactic, with the rules that are about it."""

    technique: str
    rules: list[Hits] = field(default_factory=list)

    @property
    def count(self) -> int:
        return sum(hits.count for hits in self.rules)

    @property
    def address(self) -> str | None:
        return f"https://attack.mitre.org/techniques/{self.technique.replace('.', '/')}/" if self.technique else None


def matrix(rules: Iterable[Hits]) -> dict[str, list[Cell]]:
    """Tactics in the order of an attack, each with its techniques: those that were found first."""
    cells: dict[str, dict[str, Cell]] = {}
    for hits in rules:
        tactics, techniques = _tagged(hits.about.tags)
        for tactic in tactics or ([OTHER] if techniques else []):
            for technique in techniques or [""]:
                cells.setdefault(tactic, {}).setdefault(technique, Cell(technique)).rules.append(hits)
    order = [*TACTICS, *sorted(cells.keys() - {*TACTICS, OTHER}), OTHER]
    return {t: sorted(cells[t].values(), key=lambda cell: (-cell.count, cell.technique)) for t in order if t in cells}


def _tagged(tags: Sequence[str]) -> tuple[list[str], list[str]]:
    words = [tag[len("attack.") :].lower().replace("_", "-") for tag in tags if tag.lower().startswith("attack.")]
    techniques = [word.upper() for word in words if TECHNIQUE.fullmatch(word)]
    return [word for word in words if NO_TACTIC.fullmatch(word) is None], techniques


def tactic_name(tactic: str) -> str:
    small = {"and"}
    return " ".join(word if word in small else word.capitalize() for word in tactic.split("-")) if tactic != OTHER else OTHER
