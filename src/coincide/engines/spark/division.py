"""How a group's state is divided."""

from __future__ import annotations

from typing import Any

import msgspec


class Division(msgspec.Struct, array_like=True, frozen=True):
    """By key into buckets, and these into pages. When there are to be more buckets or fewer, pages move whole (moving.py): they
    are numbered through then, and go by the number of buckets that there were `first`."""

    key: list[str]
    buckets: int
    pages: int
    first: int | None = None  # None: there have never been others

    @property
    def spread(self) -> int:
        """Over so many the low half of a key's hash is spread; the high half over the pages."""
        return self.buckets if self.first is None else self.first

    @property
    def most(self) -> int:
        """There is no use in more buckets than pages."""
        return self.spread * self.pages

    def place(self, low: Any, high: Any) -> tuple[Any, Any]:
        """The bucket, as its number among the group's, and the page. Of numbers, or of Spark's columns."""
        if self.first is None:
            return low, high
        page = low * self.pages + high
        return page % self.buckets, page

    def place_of(self, hashed: int) -> tuple[int, int]:
        return self.place(hashed % self.spread, (hashed >> 32) % self.pages)

    def into(self, buckets: int) -> Division:
        return Division(self.key, buckets, self.pages, self.spread)

    def __str__(self) -> str:
        return f"key {', '.join(self.key or ['none'])}, {self.buckets} buckets, {self.pages} pages"
