"""The extension for Visual Studio Code: its grammars are made of the languages' own words, and it can be built and packed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from coincide.editing.grammars import STYLES, file_of, grammar_text, keywords, scope_of
from coincide.editing.words import FUNCTION, words_of
from coincide.languages.registry import MODULES

VSCODE = Path(__file__).parents[3] / "editors" / "vscode"
MANIFEST = json.loads((VSCODE / "package.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("ending", STYLES)
def test_grammars_are_up_to_date(ending: str) -> None:
    """`python -m coincide.editing.grammars editors/vscode/syntaxes` writes them."""
    assert (VSCODE / "syntaxes" / file_of(ending)).read_text(encoding="utf-8") == grammar_text(ending)


@pytest.mark.parametrize("ending", STYLES)
def test_every_word_is_coloured_in_its_example(ending: str) -> None:
    style = STYLES[ending]
    patterns = [pattern for pattern in json.loads(grammar_text(ending))["patterns"] if "match" in pattern]
    found = {scope: re.compile(p["match"]) for p in patterns if (scope := p.get("name", "").rpartition("." + ending)[0])}
    flags = re.IGNORECASE if style.any_case else 0
    coloured = 0
    for word in words_of(style.language):
        scopes = ("support.function",) if word.group == FUNCTION else ("keyword.control", "keyword.other")
        for part in word.name.split() if word.form == ending else ():
            written = re.search(rf"(?<![\w.-]){re.escape(part)}(?![\w~-])", word.example, flags)
            if written is not None:
                spans = [match.span() for scope in scopes for match in found[scope].finditer(word.example)]
                assert any(start <= written.start() and written.end() <= end for start, end in spans), (word.name, part)
                coloured += 1
    assert coloured > 10
    assert all(keywords(ending).values())


def test_languages_are_those_of_the_registry() -> None:
    languages = {entry["id"]: entry["extensions"] for entry in MANIFEST["contributes"]["languages"]}
    grammars = {entry["language"]: entry for entry in MANIFEST["contributes"]["grammars"]}
    assert languages.keys() == grammars.keys()
    assert {extension for some in languages.values() for extension in some} == {f".{ending}" for ending in STYLES}
    assert {f".{ending}" for ending in STYLES} <= MODULES.keys()
    for language, (extension,) in languages.items():
        assert grammars[language]["scopeName"] == scope_of(extension[1:])
        assert (VSCODE / grammars[language]["path"]).is_file()
    client = (VSCODE / "src" / "extension.ts").read_text(encoding="utf-8")
    assert all(f'"{language}"' in client for language in languages)


def test_the_lock_file_names_no_host() -> None:
    lock = json.loads((VSCODE / "package-lock.json").read_text(encoding="utf-8"))
    assert all("resolved" not in package for package in lock["packages"].values())
    wanted = {**MANIFEST["dependencies"], **MANIFEST["devDependencies"]}
    root = lock["packages"][""]
    assert {**root["dependencies"], **root["devDependencies"]} == wanted


@pytest.mark.matrix
def test_it_is_built_and_packed(tmp_path: Path) -> None:
    if shutil.which("npm") is None:
        pytest.skip("npm is not here: the extension for Visual Studio Code is not built")
    folder = tmp_path / "vscode"
    shutil.copytree(VSCODE, folder, ignore=shutil.ignore_patterns("node_modules", "dist", "*.vsix"))
    installed = run(folder, "ci", "--no-audit", "--no-fund", "--prefer-offline")
    if installed.returncode and re.search("ENOTFOUND|ECONNREFUSED|ETIMEDOUT|EAI_AGAIN|network", installed.stderr):
        pytest.skip(f"npm reaches no registry: {installed.stderr.strip().splitlines()[0]}")
    assert installed.returncode == 0, installed.stderr
    for command in ("test", "package"):
        done = run(folder, "run", command)
        assert done.returncode == 0, done.stdout + done.stderr
    assert (folder / "coincide.vsix").stat().st_size > 50_000


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["npm", *command], cwd=folder, capture_output=True, text=True, timeout=900, check=False)
