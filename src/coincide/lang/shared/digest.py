"""The digest of a definition, by which its state is found again."""

from __future__ import annotations

from hashlib import blake2b


def digest_of(language: str, text: str) -> str:
    """Of a definition's canonical text: as it is printed with all names resolved, what is at its default left out. So neither
    how it is written counts, nor what else the language can say."""
    return blake2b(f"{language}\n{text}".encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
