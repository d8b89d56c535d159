"""Findings as one JSON object, for tools: what the page shows, in the same order."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from coincide.model.event import record
from coincide.report.findings import Findings, Hits


def data(findings: Findings) -> dict[str, Any]:
    return {
        "events": findings.read,
        "detections": findings.count,
        "time": None if findings.first is None else [findings.first, findings.last],
        "rules": [_rule(hits) for hits in findings.hits],
    }


def _rule(hits: Hits) -> dict[str, Any]:
    span = hits.detector.span
    return {
        "type": hits.detector.name,
        **asdict(hits.about),
        "place": None if span is None else f"{span.file}:{span.line}",
        "detections": hits.count,
        "hosts": dict(hits.hosts.most_common()),
        "findings": [{**finding.record, "events": [record(event) for event in finding.events]} for finding in hits.shown],
    }
