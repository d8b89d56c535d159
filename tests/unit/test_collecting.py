"""Searches for garbage where much is kept."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from coincide import collecting
from coincide.collecting import Sparing


class Ring:
    """Garbage that only a search finds."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def sparing(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    callback = Sparing()
    monkeypatch.setattr(collecting, "LONG", 0.0)
    gc.callbacks.append(callback)
    yield
    gc.callbacks.remove(callback)
    gc.unfreeze()


@pytest.mark.usefixtures("sparing")
def test_what_a_long_search_has_left_is_kept_out_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    ring = Ring()
    there = weakref.ref(ring)
    gc.collect()
    assert gc.get_freeze_count()
    del ring
    gc.collect()
    assert there() is not None
    monkeypatch.setattr(collecting, "monotonic", lambda: float("inf"))
    gc.collect()
    assert there() is None


@pytest.mark.usefixtures("sparing")
def test_what_is_new_is_searched() -> None:
    gc.collect()
    ring = Ring()
    there = weakref.ref(ring)
    del ring
    gc.collect()
    assert there() is None


def test_a_short_search_leaves_all_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collecting, "LONG", float("inf"))
    callback = Sparing()
    gc.callbacks.append(callback)
    frozen = gc.get_freeze_count()
    gc.collect()
    gc.callbacks.remove(callback)
    assert gc.get_freeze_count() == frozen
