"""A notebook as a page: its cells and what they gave, as they are kept in the file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

MAGIC = "%%coincide"


def page(text: str) -> str:
    return "\n\n".join(part for cell in json.loads(text)["cells"] for part in _cell(cell)) + "\n"


def _cell(cell: dict[str, Any]) -> Iterator[str]:
    source = _text(cell["source"])
    if cell["cell_type"] == "markdown":
        yield source
        return
    yield _rule(source) if source.startswith(MAGIC) else _fenced("python", source)
    for output in cell.get("outputs", ()):
        yield from _output(output)


def _rule(source: str) -> str:
    """A cell that is a rule: its first line is the title."""
    line, _, rule = source.partition("\n")
    language = re.search(r"(?:--language|-l) (\S+)", line)
    return _fenced(f'{language[1] if language else "say"} title="{line}"', rule)


def _output(output: dict[str, Any]) -> Iterator[str]:
    """The richest form that there is."""
    data = output.get("data", {})
    if "text/html" in data:
        html = re.sub(r"\n\s*\n", "\n", _text(data["text/html"]))  # an empty line would end the block
        yield f'<div class="notebook-output">{html}</div>'
    elif shown := _text(data.get("text/plain", output.get("text", ""))):
        yield _fenced("text", shown)
    elif output["output_type"] == "error":
        yield _fenced("text", re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(output["traceback"])))


def _fenced(kind: str, text: str) -> str:
    return f"````{kind}\n{text.rstrip()}\n````"


def _text(lines: str | list[str]) -> str:
    return lines if isinstance(lines, str) else "".join(lines)
