"""Where coincide keeps what can be made again: by the habit of the system."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def cache_directory() -> Path:
    """The user's. It need not exist yet."""
    if given := os.environ.get("XDG_CACHE_HOME"):
        return Path(given) / "coincide"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "coincide"
    return Path.home() / ".cache" / "coincide"
