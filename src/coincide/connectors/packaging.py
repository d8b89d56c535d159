"""The package as a zip, which is what Spark hands to its workers (`--py-files`; it ignores wheels)."""

from __future__ import annotations

import sys
from pathlib import Path
from shutil import copyfile
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import coincide
from coincide.adapters.files import CompleteFile

JOB = "coincide_job.py"
MOMENT = (1980, 1, 1, 0, 0, 0)
"""The same files make the same zip."""


def archive(path: Path) -> Path:
    """Writes the package that is running. What it needs (NumPy, Numba, Arrow …) is not in it."""
    root = Path(coincide.__file__).parent
    if not root.is_dir():
        root = next(parent for parent in root.parents if parent.is_file())  # it runs from such a zip
        copyfile(root, path)
        return path
    with CompleteFile(path) as file, ZipFile(file.stream, "w", ZIP_DEFLATED) as files:
        for each in sorted(root.rglob("*")):
            if each.is_file() and "__pycache__" not in each.parts:
                info = ZipInfo(each.relative_to(root.parent).as_posix(), MOMENT)
                info.compress_type = ZIP_DEFLATED
                files.writestr(info, each.read_bytes())
    return path


def main(folder: Path) -> None:
    """The zip and the job, into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    print(archive(folder / f"coincide-{coincide.__version__}.zip"))
    copyfile(Path(__file__).with_name("job.py"), folder / JOB)
    print(folder / JOB)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
