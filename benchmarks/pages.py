"""Pages that benchmarks write into: what stands between two marks is theirs."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from datetime import date
from pathlib import Path

END = "<!-- end -->"


def put(path: str | Path, name: str, lines: Sequence[str]) -> None:
    """In place of what the benchmark of this name has written before."""
    page, begin = Path(path), f"<!-- made by {name} -->"
    before, rest = page.read_text(encoding="utf-8").split(begin)
    page.write_text("\n".join([f"{before}{begin}", *lines, END]) + rest.split(END, 1)[1], encoding="utf-8")


def circumstances(*versions: str) -> str:
    """The machine, the versions and the day."""
    return ", ".join([platform.machine(), f"Python {platform.python_version()}", *versions, str(date.today())])
