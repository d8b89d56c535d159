"""Imports go one way: down the list in docs/architecture.md, those inside functions too."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "coincide"
MODELS = frozenset(p.name for p in (PACKAGE / "detection").iterdir() if (p / "interpreter.py").exists())


def layers() -> list[frozenset[str]]:
    """From the page: one row a layer, lowest first; parts of one row may import one another only if they are one folder."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = page.partition("| layer | what is in it |")[2].partition("\n\n")[0]
    rows = [line.split("|")[1] for line in table.splitlines()[2:]]
    return [frozenset(re.findall(r"`(\w+)(?:/|\.py)`", row)) for row in reversed(rows)]


BY_NAME = {"causes.py": "coincide.display.page", "rulebook.py": "coincide.display.rules"}
"""A notebook asks an object itself how it is shown."""


@cache
def imports(file: Path) -> list[str]:
    """Every module of ours that a file imports, at its top or inside functions, also by name."""
    found: list[str] = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            found += [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "import_module":
            found += [
                part.value for part in ast.walk(node.args[0]) if isinstance(part, ast.Constant) and isinstance(part.value, str)
            ]
    return [name for name in found if name != BY_NAME.get(file.relative_to(PACKAGE).as_posix())]


def allowed(part: str, imported: str, height: dict[str, int]) -> bool:
    return part == imported or height[imported] < height[part]


def test_every_part_has_its_layer() -> None:
    parts = {p.stem for p in PACKAGE.iterdir() if p.suffix == ".py" or (p / "__init__.py").exists()}
    listed = [part for layer in layers() for part in layer]
    assert sorted(listed) == sorted(parts - {"__init__"})


def test_imports_go_down() -> None:
    height = {part: number for number, layer in enumerate(layers()) for part in layer}
    wrong = []
    for file in PACKAGE.rglob("*.py"):
        part = file.relative_to(PACKAGE).parts[0].removesuffix(".py")
        ours = [name.split(".")[1] for name in imports(file) if name.startswith("coincide.")] if part in height else []
        wrong += [f"{file.relative_to(PACKAGE)}: {name}" for name in ours if name in height and not allowed(part, name, height)]
    assert not wrong


def test_what_is_for_all_languages_names_none() -> None:
    shared = [*(PACKAGE / "compile").rglob("*.py"), *(PACKAGE / "detection").glob("*.py"), PACKAGE / "languages" / "base.py"]
    languages = {p.name for p in (PACKAGE / "lang").iterdir() if (p / "definition.py").exists()}
    assert {"opera", "ecl"} <= languages
    found = [
        f"{file.relative_to(PACKAGE)}: {name}"
        for file in [*shared, PACKAGE / "unmet.py"]
        for name in imports(file)
        if name.startswith("coincide.lang.") and name.split(".")[2] in languages
    ]
    assert not found


def test_models_of_detection_do_not_import_one_another() -> None:
    assert {"machine", "situation", "automaton", "algebra", "correlation"} <= MODELS
    found = [
        f"{model}: {name}"
        for model in sorted(MODELS)
        for file in (PACKAGE / "detection" / model).rglob("*.py")
        for name in imports(file)
        if name.startswith("coincide.detection.") and name.split(".")[2] in MODELS - {model}
    ]
    assert not found


def test_names_of_test_files_differ() -> None:
    """pytest takes two of one name for one module."""
    names = [file.name for file in (ROOT / "tests").rglob("test_*.py")]
    assert sorted(set(names)) == sorted(names)
