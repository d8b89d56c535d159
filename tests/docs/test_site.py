"""The documentation as a site: built without a warning (a dead link is one), complete, and loading nothing from elsewhere."""

from __future__ import annotations

import fcntl
import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

pytest.importorskip("mkdocs")
pytest.importorskip("mkdocstrings")

pytestmark = pytest.mark.matrix  # to build it takes longer than to run what is on its pages
ROOT = Path(__file__).parents[2]
LOADED = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src", "video": "src", "audio": "src"}
LOCAL = re.compile(r"(?!https?:|//)")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built once, also where several processes run these tests: they have one folder above their own."""
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "site"
    with (folder.parent / "site.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            build(folder)
    return folder


def build(folder: Path) -> None:
    making = folder.with_name("site-in-the-making")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(making)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    making.rename(folder)


class Loads(HTMLParser):
    """What a page makes a browser fetch."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in LOADED:
            self.found += [value for name, value in attrs if name == LOADED[tag] and value]


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 60
    loaded = {(page.name, address) for page in pages for address in Loads(page).found}
    assert any(address.endswith("choose.js") for _, address in loaded)
    assert not [pair for pair in loaded if not LOCAL.match(pair[1])]
    styles = "\n".join(path.read_text(encoding="utf-8") for path in site.rglob("*.css"))
    assert not re.findall(r"(?:url\(|@import)\s*['\"]?(?:https?:)?//[^)]*", styles)
    assert not list(site.rglob("*.py"))


def test_every_page_is_there(site: Path) -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        inside = page.relative_to(ROOT / "docs")
        name = "index" if inside.stem in ("README", "index") else inside.stem
        assert (site / inside.parent / f"{name}.html").exists(), inside
    for name in ("CHANGELOG", "CONTRIBUTING", "gallery", "examples/flights/run.py"):
        assert (site / f"{name}.html").exists()


def test_blocks_have_names_and_colours(site: Path) -> None:
    page = (site / "index.html").read_text(encoding="utf-8")
    assert '<span class="filename">guessing.say</span>' in page
    assert '<span class="k">followed</span>' in page
    assert '<span class="k">monitor</span>' in (site / "ecl.html").read_text(encoding="utf-8")
    assert '<span class="k">MATCH_RECOGNIZE</span>' in (site / "match-recognize.html").read_text(encoding="utf-8")


def test_no_block_is_lost(site: Path) -> None:
    """All lines of commands are there, as they were written."""
    from html import unescape

    for name in ("events", "cookbook"):
        html = (site / f"{name}.html").read_text(encoding="utf-8")
        text = unescape(re.sub(r"<[^>]+>", "", html))
        commands = re.findall(r"^\$ (.*)$", (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8"), re.MULTILINE)
        assert len(commands) > 5
        assert not [command for command in commands if command not in text]


def test_gallery(site: Path) -> None:
    page = (site / "gallery.html").read_text(encoding="utf-8")
    pictures = sorted((site / "gallery").glob("*.svg"))
    assert len(pictures) > 50
    assert all(f'src="gallery/{picture.name}"' in page for picture in pictures)


def test_reference_of_the_public_names(site: Path) -> None:
    import coincide
    from coincide import amit, cdl, opera

    index = (site / "api" / "index.html").read_text(encoding="utf-8")
    engine = (site / "api" / "engine.html").read_text(encoding="utf-8")
    for name in set(coincide.__all__) - {"__version__"}:
        assert f'id="coincide.{name}"' in index + engine, name
    languages = (site / "api" / "languages.html").read_text(encoding="utf-8")
    for module in (amit, cdl, opera):
        for name in getattr(module, "__all__", ["event"]):
            assert f'id="{module.__name__}.{name}"' in languages, name
    spark = (ROOT / "src" / "coincide" / "spark.py").read_text(encoding="utf-8").partition("__all__")[2]
    page = (site / "api" / "spark.html").read_text(encoding="utf-8")
    for name in re.findall(r'"(\w+)"', spark):
        assert f'id="coincide.spark.{name}"' in page, name


def test_table_of_needs_is_plain(site: Path) -> None:
    page = (site / "languages.html").read_text(encoding="utf-8").partition('class="needs"')[2]
    table = page[page.index("<table>") : page.index("</table>")]
    assert table.count("<tr>") > 20
    assert "<script" not in table
    assert re.search(r'<a href="ecco.html#windows">●</a>', table)


def test_notebooks_show_what_they_gave(site: Path) -> None:
    page = (site / "examples" / "notebooks" / "pandas.ipynb.html").read_text(encoding="utf-8")
    assert page.count('class="notebook-output"') >= 5
    assert "← completes it" in page


def test_search(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    assert any("lifespan" in entry["text"] for entry in index["docs"])
    assert (site / "search" / "search_index.js").exists()  # from disk, too
