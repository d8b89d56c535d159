"""What the package carries is what the sources in the folder `studio` make."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SOURCES, PAGE = ROOT / "studio", ROOT / "src" / "coincide" / "studio" / "page"


def digest() -> str:
    """As vite.config.ts makes it."""
    own = ["index.html", "package.json", "package-lock.json", "tsconfig.json", "vite.config.ts"]
    names = sorted([*own, *(f"src/{path.name}" for path in (SOURCES / "src").iterdir())])
    found = hashlib.sha256()
    for name in names:
        found.update(f"{name}\n".encode())
        found.update((SOURCES / name).read_bytes())
    return found.hexdigest()


def test_the_page_is_built_of_these_sources() -> None:
    """If this fails: `make page`, and commit what it writes."""
    assert (PAGE / "sources.sha256").read_text().strip() == digest()


def test_the_same_is_built_again(tmp_path: Path) -> None:
    if shutil.which("node") is None or not (SOURCES / "node_modules" / "vite").is_dir():
        pytest.skip("the page is not built again: Node, or what `npm ci` installs, is not here")
    command = ["node", "node_modules/vite/bin/vite.js", "build", "--outDir", str(tmp_path), "--logLevel", "error"]
    subprocess.run(command, cwd=SOURCES, check=True, timeout=500)
    built = {path.relative_to(tmp_path): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert built == {path.relative_to(PAGE): path.read_bytes() for path in PAGE.rglob("*") if path.is_file()}


def test_packages_come_from_wherever_whoever_builds_gets_them() -> None:
    packages = json.loads((SOURCES / "package-lock.json").read_text())["packages"]
    assert len(packages) > 20
    assert all("resolved" not in package for package in packages.values())
    assert all("integrity" in package for name, package in packages.items() if name)


def test_nothing_is_asked_of_other_machines() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in (PAGE / "assets").glob("*.css"))
    assert "url(" not in text
    assert "@import" not in text
