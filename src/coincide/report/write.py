"""Findings to a file, by its ending."""

from __future__ import annotations

from pathlib import Path

from coincide.adapters.files import CompleteFile
from coincide.errors import Diagnostic, InputError
from coincide.report.findings import Findings

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

        from coincide.report.data import data

        content = msgspec.json.encode(data(findings)) + b"\n"
    else:
        from coincide.report.page import page

        content = page(findings, title).encode("utf-8", "replace")
    with CompleteFile(path) as file:
        file.stream.write(content)
