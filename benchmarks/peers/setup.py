"""The environment of the peers, apart from ours because they pin what they need: python -m benchmarks.peers.setup

About 850 MB in .venv-peers, a few minutes."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).parent
ENVIRONMENT = HERE.parents[1] / ".venv-peers"
PYTHON = ENVIRONMENT / "bin" / "python"
INSTALL = "python -m benchmarks.peers.setup"

FLINK, SIDDHI = "apache-flink==2.3.0", "PySiddhi==5.1.0"


def packages() -> Path:
    """Where the environment's packages are."""
    return ENVIRONMENT / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"


def main() -> None:
    venv.create(ENVIRONMENT, with_pip=True)
    _install(FLINK)
    _install("--no-deps", SIDDHI)  # only the jars in it are used


def _install(*arguments: str) -> None:
    subprocess.run([PYTHON, "-m", "pip", "install", *arguments], check=True)


if __name__ == "__main__":
    main()
