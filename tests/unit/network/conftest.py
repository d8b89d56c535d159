from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import Processes


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    made = Processes(tmp_path)
    yield made
    made.stop()
