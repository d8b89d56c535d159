"""Cases of all languages as one rule set over one stream.

A copy of each case gets names of its own: the types of its events and of its detections are spelled with its number in front.
What comes of a copy must be what comes of the case, or the renaming went wrong (a type that is also the name of an attribute,
say); such cases stay out."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from coincide.errors import CoincideError
from coincide.rulebook import Rulebook, load
from coincide.testing.cases import Case, Setup
from coincide.testing.compare import unmatched
from coincide.testing.kinds import detections_of

Records = list[dict[str, Any]]
Mixed = tuple[Rulebook, Records, int]
"""Rules, events, and until when the clock goes on."""
Answer = Callable[[str, str], Records]
"""Of an engine and a tier of it."""
Streamed = Callable[[int], list[Records]]
"""Of a part of the cases."""
Answers = dict[str, tuple[Records, Records]]
"""By case: what the embedded engine finds, and what Spark does."""

SAMPLE = {
    "ecl/avionics", "ecl/do-unless", "ecl/interval-time", "ecl/keys", "ecl/keys-modes", "ecl/machine-example-3",
    "ecl/several-files", "ecl/total-order",
    "amit/after", "amit/fig10-portal-collapse", "amit/key-global", "amit/mode-deferred",
    "amit/startup-after-heartbeats", "amit/where",
    "opera/parameter-doors", "opera/parallel", "opera/timing-daily", "pretty/then-within",
    "ecco/example-1-average", "ecco/per-key", "ecco/silence",
    "cdl/set-and-range-values", "cdl/time-event-chained", "cdl/within",
    "mixed/five-in-a-row",
    "eql/keys-optional", "eql/keys-several-values", "eql/missing-trailing-until-time", "eql/rules-over-detections", "eql/until",
    "sigma/mapping", "sigma/values",
    "match-recognize/end-open", "match-recognize/timed-out", "match-recognize/views-chained",
    "opera-policies/policy-per-detector", "opera-policies/probabilistic-time-passes",
}  # fmt: skip
"""One case for each construct: on Spark streaming one by itself takes seconds."""

PARTS = 8
"""On a stream, one case in so many at a time: for each of its groups Spark keeps a state, and the whole set does not fit into the
memory of a small one."""

APART = ("policy", "end", "mapping.yml", "expected-error")
"""Files of cases that say how the whole run goes, or that it stops."""

LATEST = 10_000_000_000
"""So far the clock goes on (ms). Cases whose events come later stay out, and rules that act again and again without them: until
then they would do so millions of times."""

LOUD = {
    "amit/lifespan-shared", "ecl/chained-monitors", "ecl/machine-never-settles-late", "ecl/predicate-null",
    "ecl/predicate-operators", "eql/any-category", "eql/arithmetic", "eql/precedence", "eql/several-values",
}  # fmt: skip
"""Cases that answer each event of all others, or themselves: thousands of detections."""

DEFINED = re.compile(r"""<(?:event|key|lifespan|template)\b[^>]*?\bname=["']([^"']+)""")
"""Names that Amit's files define."""


@dataclass(frozen=True)
class Copy:
    """A case under names of its own."""

    folder: Path
    number: int
    name: str

    @property
    def case(self) -> Case:
        return Case(self.folder)

    def named(self, type: str) -> str:
        return f"c{self.number}_{type}"


def copies(cases: Sequence[Case], folder: Path) -> list[Copy]:
    """Of those cases that can be renamed."""
    told = [case for case in cases if case.path("expected.jsonl") and not any(map(case.path, APART)) and case.name not in LOUD]
    wanted = list(filter(_is_early, told))
    made = [_copied(case, Copy(folder / f"c{number}", number, case.name)) for number, case in enumerate(wanted)]
    return [copy for copy, case in zip(made, wanted, strict=True) if _is_faithful(copy, case)]


def part(made: Sequence[Copy], number: int) -> list[Copy]:
    """Those of the sample are the first."""
    return [copy for place, copy in enumerate(made) if (0 if copy.name in SAMPLE else 1 + place % PARTS) == number]


def together(made: Sequence[Copy]) -> Mixed:
    """The rules of all, and the events of all, with ids that tell them apart."""
    book = load(*(path for copy in made for path in copy.case.rules))
    return book, [record for copy in made for record in _records(copy)], LATEST


def _copied(case: Case, copy: Copy) -> Copy:
    shutil.copytree(case.folder, copy.folder)
    words = sorted(_names(case), key=len, reverse=True)
    spelled = re.compile(rf"""(?<![\w.$<-])(?<!Mode=")(?<!quantifier=")(?:{"|".join(map(re.escape, words))})(?![\w-]|=")""")
    for path in (p for rules in copy.case.rules for p in ([rules] if rules.is_file() else rules.rglob("*.y*ml"))):
        text = path.read_text(encoding="utf-8")
        path.write_text(spelled.sub(lambda word: copy.named(word[0]), text), encoding="utf-8")
    lines = [{**record, "type": copy.named(str(record["type"]))} if "type" in record else record for record in _lines(copy.case)]
    (copy.folder / "events.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return copy


@cache
def _book(case: Case) -> Rulebook:
    return case.book()


def _names(case: Case) -> set[str]:
    found = {str(record["type"]) for record in _lines(case) if "type" in record}
    for path in (path for path in case.rules if path.name.endswith(".amit.xml")):
        found.update(DEFINED.findall(path.read_text(encoding="utf-8")))
    return found | {output for detector in _book(case).detectors for output in (*detector.outputs, detector.name)}


def _is_early(case: Case) -> bool:
    times = [time for record in _lines(case) for time in np.ravel(record.get("time")).tolist()]
    return all(isinstance(time, (int, float)) and 0 <= time < LATEST for time in times) and not any(
        plan.ticking for plan in _book(case).plans()
    )


def _is_faithful(copy: Copy, case: Case) -> bool:
    try:
        found = detections_of(copy.case, Setup(tier="interpreter"))
    except CoincideError:
        return False
    wanted = [{**record, "type": copy.named(record["type"])} for record in _lines(case, "expected.jsonl")]
    return unmatched(wanted, found) == ([], [])


def _lines(case: Case, name: str = "events.jsonl") -> Records:
    path = case.folder / name
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()] if path.is_file() else []


def _records(copy: Copy) -> Iterator[dict[str, Any]]:
    for number, record in enumerate(_lines(copy.case), 1):
        yield {**record, "id": f"c{copy.number}-{number:04}"}
