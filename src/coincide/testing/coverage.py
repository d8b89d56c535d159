"""`python -m coincide.testing.coverage CASES`: which of the cases' rules have a compiled tier, and why the others have none, as
the page docs/kernels.md. It is made of what plans say of themselves, so it cannot promise more than they do."""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from coincide.detection.base import DetectorPlan
from coincide.testing.cases import Case, find_cases

HEAD = """\
# What is compiled

Every rule runs in the interpreter; most have a second, much faster tier for large inputs, compiled or over whole columns. This
page says which have none, and why: it is made of the rules of the conformance cases and of what their plans say
(`python -m coincide.testing.coverage tests/conformance/cases`), and a test fails when it is out of date. Of your own rules
`coincide explain` says the same. A rule that has to be interpreted does not keep the others of its file from their tier.
"""
SECTION = """
## {}: interpreted

| why | for instance in the case |
| --- | --- |
"""
ALL = "\nOf {} all cases have a fast tier.\n"
NAMED = re.compile(r"^(?:(?:situation |lifespan |description )?'[^']*':? |it )")
"""How a reason begins: with the rule that it is of."""


Reasons = dict[str, dict[str, str]]
"""By language and reason the first case that has a rule with it."""


def coverage(cases: Iterable[Case]) -> Reasons:
    found: Reasons = defaultdict(dict)
    for case in sorted(cases, key=lambda case: case.name):
        book = case.book()
        languages = {detector.name: detector.language for detector in book.detectors}
        for plan in book.plans():
            own = found[languages[plan.definitions[0]]]
            for reason in why_interpreted(plan):
                own.setdefault(NAMED.sub("", reason), case.name)
    return found


def why_interpreted(plan: DetectorPlan) -> tuple[str, ...]:
    """Empty: it has a fast tier."""
    reasons: tuple[str, ...] = plan.tier_reasons() or getattr(plan, "loop_reasons", tuple)()
    return reasons


def page(folder: Path) -> str:
    """Of the cases in a folder."""
    found = coverage(case for case in find_cases(folder) if case.path("expected.jsonl") and case.path("events.jsonl"))
    every = [language for language in sorted(found) if not found[language]]
    return "".join([HEAD, ALL.format(", ".join(every)), *(_section(name, found[name]) for name in sorted(found) if found[name])])


def _section(language: str, reasons: dict[str, str]) -> str:
    lines = [f"| {reason} | `{case}` |\n".replace("+ | -", "+ \\| -") for reason, case in sorted(reasons.items())]
    return SECTION.format(language) + "".join(lines)


if __name__ == "__main__":
    sys.stdout.write(page(Path(sys.argv[1])))
