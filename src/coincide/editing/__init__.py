"""What editors ask about rule texts, whatever editor it is: plain functions over texts, which may be half written.

A text is a `SourceText`: the ending of its name tells the language. `others` are the other rule files of the folder, since a
detection of one file is an event of another; `names` are learnt from a sample of events or a schema. Places are offsets."""

from coincide.editing.checking import diagnostics
from coincide.editing.completion import Completion, completions
from coincide.editing.files import is_rules
from coincide.editing.formatting import formatted
from coincide.editing.hovering import Hover, hover
from coincide.editing.learning import Names, joined, names_in
from coincide.editing.marks import Mark
from coincide.editing.marks import marks_of as tokens
from coincide.editing.navigation import Edit, Symbol, definition, name_at, references, rename, symbols

__all__ = [
    "Completion",
    "Edit",
    "Hover",
    "Mark",
    "Names",
    "Symbol",
    "completions",
    "definition",
    "diagnostics",
    "formatted",
    "hover",
    "is_rules",
    "joined",
    "name_at",
    "names_in",
    "references",
    "rename",
    "symbols",
    "tokens",
]
