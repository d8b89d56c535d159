"""Where compiled code is kept, by the text of all files that it is made from; told without a compiler at hand."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import lru_cache
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from zipfile import ZipFile

from coincide.folders import cache_directory

IMPORT = re.compile(r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^)]*|[^#\n]*)|import[ \t]+([\w.]+))", re.MULTILINE)


def is_compiled(module: str) -> bool:
    """Has this machine compiled code of a module, as its files are now?"""
    spec = find_spec(module)
    return spec is None or spec.origin is None or any(kernel_folder(Path(spec.origin).resolve()).glob("*.nbi"))


def kernel_folder(file: Path) -> Path:
    """The folder for what is compiled of a file."""
    return kernels_directory() / ".".join(_module(file)) / source_stamp(file)


def kernels_directory() -> Path:
    return cache_directory() / "kernels"


@lru_cache
def source_stamp(file: Path) -> str:
    """Of the text of a file and of all that it imports from the same root; of a zip, such as Spark hands to its workers, of all
    files."""
    digest = blake2b(digest_size=16)
    if (archive := archive_of(file)) is not None:
        with ZipFile(archive) as files:
            digest.update(repr(sorted((entry.filename, entry.CRC) for entry in files.infolist())).encode())
        return digest.hexdigest()
    for path in sorted(_closure(file), key=_module):
        digest.update("/".join(_module(path)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _closure(file: Path) -> set[Path]:
    found, new = {file}, [file]
    while new:
        reached = imported_files(new.pop()) - found
        found |= reached
        new.extend(reached)
    return found


@lru_cache(maxsize=1024)
def imported_files(file: Path) -> frozenset[Path]:
    """The files that a file imports, of those below its root."""
    root = file.parents[len(_module(file)) - 1]
    names = (name for match in IMPORT.finditer(file.read_text(encoding="utf-8")) for name in _names(match))
    return frozenset(path for name in names if (path := _file_of(root, name)) is not None)


def _names(match: re.Match[str]) -> Iterator[str]:
    """`from a import b` may mean the module a.b."""
    yield match[1] or match[3]
    if match[1]:
        yield from (f"{match[1]}.{name.split()[0]}" for name in match[2].strip("( ").split(",") if name.strip())


@lru_cache(maxsize=4096)
def _file_of(root: Path, name: str) -> Path | None:
    """Paths as texts: a run asks for hundreds before its first event."""
    path = os.path.join(root, *name.split("."))
    return next((Path(p) for p in (f"{path}.py", os.path.join(path, "__init__.py")) if os.path.isfile(p)), None)


@lru_cache(maxsize=1024)
def archive_of(file: Path) -> Path | None:
    """The zip that a module was imported from, if it was."""
    return None if file.exists() else next((path for path in file.parents if path.is_file()), None)


@lru_cache(maxsize=1024)
def _module(file: Path) -> tuple[str, ...]:
    """Its name by the folders that are packages, from the outermost on."""
    if (archive := archive_of(file)) is not None:
        return file.relative_to(archive).with_suffix("").parts
    parts, folder = [file.stem], file.parent
    while (folder / "__init__.py").exists():
        parts.append(folder.name)
        folder = folder.parent
    return tuple(reversed(parts))
