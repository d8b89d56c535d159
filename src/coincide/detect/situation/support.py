from __future__ import annotations

from coincide.detect.situation.program import Group


def loop_reasons(group: Group) -> tuple[str, ...]:
    return ("not built yet",)
