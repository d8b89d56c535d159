"""`coincide warm`: compile the kernels now, so that no run has to."""

from __future__ import annotations

import argparse

from coincide.cli.command import Command, Given

DESCRIPTION = """\
Compile all kernels ahead.

Each is compiled once on a machine, as a rule: for installers, images and the workers of a cluster. Without it a run begins in the
interpreter and goes over to a kernel when that has been compiled in the background.

example:
  coincide warm
"""


def _arguments(parser: argparse.ArgumentParser) -> None:
    """It has none of its own."""


def warm(given: Given) -> int:
    from coincide.cli.report import note
    from coincide.detection.columns.stamps import kernels_directory
    from coincide.engines.warming import warm_all

    warm_all()
    note(f"kernels are compiled and kept in {kernels_directory()}")
    return 0


WARM = Command("warm", DESCRIPTION, _arguments, warm)
