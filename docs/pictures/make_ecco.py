"""The picture of docs/ecco.md, made from its first example: what is drawn is what ECCO detects.

    python docs/pictures/make_ecco.py

Definitions that the example only names (`let`) are drawn too."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import coincide
from coincide.draw.timeline import timeline

HERE = Path(__file__).parent
PAGE = HERE.parent / "ecco.md"
PICTURE = HERE / "ecco-storm.svg"


def block(page: str, name: str) -> str:
    found = re.search(rf"^```\w+ file={re.escape(name)}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert found is not None, name
    return found[1]


def drawn(page: str) -> str:
    rules = re.sub(r"^let ", "detect ", block(page, "storm.ecco"), flags=re.MULTILINE)
    events = [json.loads(line) for line in block(page, "weather.jsonl").splitlines()]
    found = coincide.detect(coincide.loads(rules, language="ecco"), events)
    records = [{**event, "time": datetime.fromisoformat(event["time"]).timestamp() * 1000} for event in events]
    leads = {number: [r for r in records if r["id"] in d["from"]] for number, d in enumerate(found)}
    return timeline(records, found, title="Snow storms", label=_label, leads=leads)


def _label(detection: Mapping[str, Any]) -> str:
    return " ".join(detection["from"])


if __name__ == "__main__":
    PICTURE.write_text(drawn(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
