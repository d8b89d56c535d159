"""A queue of rows by when they are due, in compiled loops: what dues.py is for Python. What is equally due comes by number."""

from __future__ import annotations

from coincide.detection.columns.compiling import inlined
from coincide.detection.columns.records import Records, record

ENTRY = record("due number row")


@inlined
def push(heap: Records, size: int, due: int, number: int, row: int) -> None:
    """To so many that there are."""
    at = size
    while at > 0 and _sooner(due, number, heap, (at - 1) // 2):
        heap[at] = heap[(at - 1) // 2]
        at = (at - 1) // 2
    heap[at].due, heap[at].number, heap[at].row = due, number, row


@inlined
def pop(heap: Records, size: int) -> int:
    """The row of the first of so many; one less is left."""
    first, last, at, child = heap[0].row, size - 1, 0, 1
    due, number, row = heap[last].due, heap[last].number, heap[last].row
    while child < last:
        if child + 1 < last and _sooner(heap[child + 1].due, heap[child + 1].number, heap, child):
            child += 1
        if not _sooner(heap[child].due, heap[child].number, heap, last):
            break
        heap[at] = heap[child]
        at, child = child, 2 * child + 1
    heap[at].due, heap[at].number, heap[at].row = due, number, row
    return int(first)


@inlined
def _sooner(due: int, number: int, heap: Records, than: int) -> bool:
    return bool(due < heap[than].due or (due == heap[than].due and number < heap[than].number))
