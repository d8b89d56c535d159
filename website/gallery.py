"""The gallery: rules of every language that can be drawn, from the conformance cases, and what they find."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

from coincide.api import observed
from coincide.draw.rules import drawing
from coincide.draw.stream import timeline_of
from coincide.draw.svg import svg
from coincide.languages.registry import is_rule_file
from coincide.rulebook import load

PAGE = "gallery.md"
HEAD = """# Gallery

Rules as `coincide draw` draws them, and what they find in a few events. All are conformance cases;
[Pictures](drawing.md) says how to draw your own.
"""
SHOWN = {
    ("Opera", "opera.md", "ce"): ("network-five-alarms", "scenario-1", "parallel", "timing-not-within"),
    ("In English", "opera.md", "say"): ("some-of", "not-followed-by", "times-within"),
    ("ECL", "ecl.md", "correlation"): ("avionics", "do-unless", "modes", "paper-example-1"),
    ("Amit", "amit.md", "xml"): ("fig10-portal-collapse", "fig13-strong-buy", "fig16-sell-stock", "unless"),
    ("ECCO", "ecco.md", "ecco"): ("figure-5-snow-storm", "example-2-stop-sign", "example-3-highway", "silence"),
    ("CDL", "cdl.md", "xml"): ("paper-physician-visit", "absence-between-two-events", "collection-aggregates"),
    ("MATCH_RECOGNIZE", "match-recognize.md", "match_recognize"): ("v-shape", "alternation", "permute"),
    ("EQL", "eql.md", "eql"): ("missing-between", "runs", "until", "sample"),
}
"""Of each language: its name, its page, its lexer; and cases of it."""
FOLDERS = {"Opera": "opera", "In English": "pretty", "MATCH_RECOGNIZE": "match-recognize"}


def files(root: Path) -> Iterator[tuple[str, str]]:
    """The page and its pictures."""
    parts = [HEAD]
    for (language, page, lexer), cases in SHOWN.items():
        parts.append(f"## {language}\n\n[The language by example]({page})\n")
        for case in cases:
            folder = root / "tests" / "conformance" / "cases" / FOLDERS.get(language, language.lower()) / case
            rules = next(path for path in sorted(folder.iterdir()) if is_rule_file(path.name))
            name = f"gallery/{folder.parent.name}-{case}"
            yield f"{name}.svg", _drawn(rules)
            yield f"{name}-run.svg", _run(rules, folder)
            parts.append(_entry(case.replace("-", " ").capitalize(), name, rules.read_text(encoding="utf-8"), lexer))
    yield PAGE, "\n".join(parts)


def _entry(title: str, name: str, rules: str, lexer: str) -> str:
    indented = "".join(f"    {line}\n" for line in rules.splitlines())
    return (
        f"### {title}\n\n![{title}]({name}.svg)\n\n"
        f'??? note "The rule"\n\n    ```{lexer}\n{indented}    ```\n\n'
        f'??? note "What it finds in the events of its case"\n\n    ![Events and detections]({name}-run.svg)\n'
    )


def _drawn(rules: Path) -> str:
    drawings = [drawn for detector in load(rules).detectors if (drawn := drawing(detector)) is not None]
    return svg(drawings)


def _run(rules: Path, folder: Path) -> str:
    until = folder / "until"
    with warnings.catch_warnings(action="ignore"):
        causes = observed(rules, folder / "events.jsonl", until.read_text().strip() if until.exists() else None)
    return timeline_of(causes, rules.parent.name)
