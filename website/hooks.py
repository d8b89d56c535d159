"""What MkDocs is asked to do beside the usual: blocks get their file's name as a title and the lexer of their language,
links out of `docs/` lead to pages that are made of what is there, and the gallery is drawn."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from posixpath import dirname, relpath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).parent))

import gallery
import notebooks

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
FENCE = re.compile(r"^```(?P<kind>[\w-]*)(?P<info>[^\n`]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<=\]\()(?P<target>[^)#:\s]+)(?=(?:#[^)\s]*)?\))")
LAST = "Inside"
LEXERS = {"ecl": "correlation", "sh": "console", "mr.sql": "match_recognize"}
"""By the word of a fence, or by the ending of its file."""


def on_config(config: MkDocsConfig) -> None:
    """Decisions, and pages that the list in mkdocs.yml does not name, stand at its end."""
    named = set(_named(config.nav))
    left = [page for path in sorted(DOCS.rglob("*.md")) if (page := path.relative_to(DOCS).as_posix()) not in named]
    decisions = [page for page in left if page.startswith("decisions/")]
    others = [page for page in left if page not in decisions]
    next(part[LAST] for part in config.nav if LAST in part).extend([*others, {"Decisions": decisions}])


def _named(nav: Any) -> Iterator[str]:
    """All pages of a list of lists."""
    if isinstance(nav, str):
        yield nav
    for part in nav.values() if isinstance(nav, dict) else nav if isinstance(nav, list) else ():
        yield from _named(part)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for path in sorted(_outside(DOCS.rglob("*.md"))):
        files.append(File.generated(config, _site_path(path), content=_page_of(path)))
    for name, content in gallery.files(ROOT):
        files.append(File.generated(config, name, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    return FENCE.sub(_fence, _relinked(markdown, page.file.src_uri))


# Blocks.


def _fence(found: re.Match[str]) -> str:
    kind, info, text = found["kind"], found["info"].strip(), found["text"]
    file = re.search(r"file=(\S+)", info)
    ending = next((ending for ending in LEXERS if file and file[1].endswith(f".{ending}")), kind)
    title = file[1] if file else "on Spark" if "spark" in info.split() else None
    head = f'{LEXERS.get(ending, kind)} title="{title}"' if title else LEXERS.get(kind, kind)
    return f"```{head}\n{text}```"


# Links that lead out of `docs/`.


def _outside(pages: Iterator[Path]) -> set[Path]:
    """Files elsewhere that these pages link to, and those that these link to again."""
    found: set[Path] = set()
    left = list(pages)
    while left:
        page = left.pop()
        links = {target for target in _targets(page) if target.is_file() and not target.is_relative_to(DOCS)} - found
        found |= links
        left += [target for target in links if target.suffix == ".md"]
    return found


def _targets(page: Path) -> Iterator[Path]:
    for target in LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
        yield (page.parent / target).resolve()


def _site_path(path: Path) -> str:
    """Where a file of the repository is a page of the site."""
    if path.is_relative_to(DOCS):
        return path.relative_to(DOCS).as_posix()
    inside = (path.parent if path.name == "README.md" else path).relative_to(ROOT).as_posix()
    return inside if inside.endswith(".md") else f"{inside}.md"


def _repository_path(page: str) -> Path:
    """The other way round."""
    bare = ROOT / page.removesuffix(".md")
    return next(path for path in (DOCS / page, ROOT / page, bare / "README.md", bare) if path.is_file())


def _page_of(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return text
    if path.suffix == ".ipynb":
        return notebooks.page(text)
    return f"# {path.relative_to(ROOT).as_posix()}\n\n````{path.suffix[1:]}\n{text}````\n"


def _relinked(markdown: str, page: str) -> str:
    if page == gallery.PAGE:
        return markdown
    home = _repository_path(page)
    if home.suffix == ".py":
        return markdown

    def link(found: re.Match[str]) -> str:
        target = (home.parent / found["target"]).resolve()
        if not target.is_file() or target.suffix in (".svg", ".png"):
            return found["target"]
        return relpath(_site_path(target), dirname(page) or ".")

    return _outside_fences(markdown, lambda prose: LINK.sub(link, prose))


def _outside_fences(markdown: str, change: Any) -> str:
    parts, end = [], 0
    for fence in FENCE.finditer(markdown):
        parts += [change(markdown[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*parts, change(markdown[end:])])
