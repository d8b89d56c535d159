"""Findings to a file, by its ending."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from coincide.adapters.files import CompleteFile
from coincide.errors import Diagnostic, InputError
from coincide.model.event import record
from coincide.report.findings import Findings, Hits

ENDINGS = (".html", ".htm", ".json")


def check_ending(path: str) -> None:
    if not path.lower().endswith(ENDINGS):
        raise InputError(
            Diagnostic(f"cannot tell the form of the report '{path}' by its ending", hint=f"known: {' '.join(ENDINGS)}")
        )


def write_report(findings: Findings, path: str, title: str) -> None:
    check_ending(path)
    if Path(path).suffix.lower() == ".json":
        import msgspec

        content = msgspec.json.encode(data(findings)) + b"\n"
    else:
        from coincide.report.page import page

        content = page(findings, title).encode("utf-8", "replace")
    with CompleteFile(path) as file:
        file.stream.write(content)


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
