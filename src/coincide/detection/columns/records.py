"""Records of whole numbers with named fields: what compiled loops keep in arrays."""

from __future__ import annotations

import numpy as np


def record(names: str) -> np.dtype[np.void]:
    return np.dtype([(name, np.int64) for name in names.split()], align=True)
