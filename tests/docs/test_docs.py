"""README and docs do what they say: their blocks are run, file by file, in a fresh folder.

    ```ecl file=NAME      the block is written to a file (any language)
    ```python             runs; what it prints must be the ```text block that follows, if one does
    ```console            lines that begin with `$ ` run in a shell; the lines after each are what it prints

Blocks of other kinds (sh, mermaid …) are only read."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(?P<kind>[\w-]*)(?P<info>[^\n`]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    kind: str
    info: str
    text: str
    line: int


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [Block(m["kind"], m["info"].strip(), m["text"], text.count("\n", 0, m.start()) + 1) for m in FENCE.finditer(text)]


def needs_spark(page: Path) -> bool:
    return any("spark" in block.info for block in blocks(page))


def parameters() -> Iterator[Any]:
    for page in PAGES:
        if any(block.kind in ("python", "console") or "file=" in block.info for block in blocks(page)):
            marks = [pytest.mark.spark] if needs_spark(page) else []
            yield pytest.param(page, id=str(page.relative_to(ROOT)), marks=marks)


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Executor]:
    """A process of their own for pages that start and stop a Spark, whose folder is the one in which Java was started."""
    folder = tmp_path_factory.mktemp("apart")
    with ProcessPoolExecutor(1, get_context("spawn"), os.chdir, (folder,)) as made:
        yield made


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of a `coincide` that is there at once."""
    folder = tmp_path_factory.mktemp("program")
    command = [sys.executable, Path(__file__).with_name("forking.py"), folder / "coincide"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as served:
        assert served.stdout is not None
        assert served.stdout.readline() == "ready\n"
        yield folder
        served.terminate()


@pytest.mark.parametrize("page", list(parameters()))
def test_page(page: Path, tmp_path: Path, apart: Executor, program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", os.pathsep.join([str(program), str(Path(sys.executable).parent), os.environ["PATH"]]))
    if needs_spark(page):
        apart.submit(run_spark_page, page).result()
    else:
        run_page(page, tmp_path)


def run_spark_page(page: Path) -> None:
    """As if nothing had run before in this process."""
    from pyspark.sql import SparkSession

    folder = Path.cwd()
    for entry in folder.iterdir():
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    try:
        run_page(page, folder)
    finally:
        if session := SparkSession.getActiveSession():
            session.stop()


def run_page(page: Path, folder: Path) -> None:
    namespace: dict[str, Any] = {"__name__": "docs"}
    all_blocks = blocks(page)
    for number, block in enumerate(all_blocks):
        where = f"{page.name}:{block.line}"
        if "file=" in block.info:
            target = folder / re.findall(r"file=(\S+)", block.info)[0]
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.text, encoding="utf-8")
        elif block.kind == "python":
            following = all_blocks[number + 1] if number + 1 < len(all_blocks) else None
            run_python(block, following if following and following.kind == "text" else None, namespace, where)
        elif block.kind == "console":
            run_console(block, where)


def run_python(block: Block, expected: Block | None, namespace: dict[str, Any], where: str) -> None:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(block.text, where, "exec"), namespace)
    if expected is not None:
        assert printed.getvalue().rstrip() == expected.text.rstrip(), where


def run_console(block: Block, where: str) -> None:
    for command, expected in re.findall(r"^\$ ([^\n]*)\n((?:(?!\$ )[^\n]*\n)*)", block.text, re.MULTILINE):
        assert printed_by(command).rstrip() == expected.rstrip(), f"{where}: $ {command}"


def printed_by(command: str) -> str:
    """Standard output, then standard error. What needs no shell runs in this process: starting one takes most of the time."""
    words = list(shlex.shlex(command, posix=True, punctuation_chars=True))
    if words[0] == "coincide" and not any(set(word) <= set("();<>|&$*?") for word in words) and "$" not in command:
        return printed_here(shlex.split(command)[1:])
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=300, check=False)
    return done.stdout + done.stderr


def printed_here(arguments: list[str]) -> str:
    import logging

    from coincide.cli.main import main

    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        patch.setattr(logging.root, "handlers", [])  # pytest's: without them a warning goes to standard error
        main(arguments)
    return b"".join(stream.buffer.getvalue() for stream in (out, err)).decode()  # type: ignore[attr-defined]


def anchors(page: Path) -> set[str]:
    """What its headings are called in links."""
    heads = re.findall(r"^#+ (.*)$", FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def test_links_lead_somewhere() -> None:
    broken = []
    for page in PAGES:
        prose = re.sub(r"`[^`\n]*`(?!\])", "", FENCE.sub("", page.read_text(encoding="utf-8")))
        for target, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", prose):
            path = page.parent / target if target else page
            if not path.exists() or (anchor and anchor not in anchors(path)):
                broken.append(f"{page.name}: {target}#{anchor}")
    assert not broken
