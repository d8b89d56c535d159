"""`coincide lsp`: rules in editors."""

from __future__ import annotations

import argparse

from coincide.cli.command import Command, Given

DESCRIPTION = """\
Serve editors by the Language Server Protocol, over standard input and output.

Editors start it themselves; docs/editors.md says how. It knows all rule languages: errors as one types, completion,
hover, definitions and references over the files of a folder, renaming, layout, colours. Names of events and attributes
are learnt from a sample of events or a JSON Schema, which `events` in a file coincide.json beside the rules names.

example:
  coincide lsp
"""


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--stdio", action="store_true", help="as without it: some editors say so")


def serve_editors(given: Given) -> int:
    from coincide.errors import CoincideError

    try:
        from coincide.lsp.server import serve
    except ImportError:
        raise CoincideError("`coincide lsp` needs the extra `lsp`: pip install 'coincide[lsp]'") from None
    serve()
    return 0


LSP = Command("lsp", DESCRIPTION, _arguments, serve_editors)
