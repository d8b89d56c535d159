"""`%%coincide`: a cell of a notebook that is a rule, and a DataFrame for it to look at."""

from __future__ import annotations

import shlex
import sys
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments

from coincide.adapters.mapping import FieldMapping
from coincide.api import detect
from coincide.errors import CoincideError, Diagnostic, InputError, nearest
from coincide.rulebook import Rulebook, loads


def register(shell: Any) -> None:
    shell.register_magics(CoincideMagics)


@magics_class
class CoincideMagics(Magics):  # type: ignore[misc]
    """The text of the cell is never Python: of the notebook only the variables are read that the first line names."""

    @magic_arguments()
    @argument(
        "frame", nargs="?", help="a pandas, Polars, Arrow or Spark table, or a list of records; without it the rules are drawn"
    )
    @argument("--language", "-l", default="say", help="ecl, amit, opera, say, ecco, cdl, eql, sigma, or a file ending (say)")
    @argument("--out", "-o", metavar="NAME", help="the variable that takes the detections")
    @argument("--rules", "-r", metavar="NAME", help="the variable that takes the rulebook")
    @argument("--type", metavar="COLUMN", help="the column with the type of each event (type)")
    @argument("--every", metavar="TYPE", help="every row is an event of this type")
    @argument("--time", metavar="COLUMN", help="the column with the time of each event (time)")
    @argument("--unit", choices=("s", "ms", "us", "ns"), help="of times that are numbers (ms)")
    @argument("--id", metavar="COLUMN", help="the column with the id of each event (id)")
    @argument("--until", metavar="TIME", help="let time go on after the last event: milliseconds, ISO-8601, or inf")
    @argument("--keys", action="store_true", help="give each detection its key, which is the same in every run")
    @argument("--why", action="store_true", help="keep what led to each detection: rows unfold, and `timeline` draws the run")
    @argument("--timeline", action="store_true", help="show the run on a line of time, below the detections")
    @cell_magic  # type: ignore[untyped-decorator]
    def coincide(self, line: str, cell: str) -> Any:
        """Run the rules of this cell over a table: %%coincide FRAME [options]

        Detections are shown as a table, which is a list of records; of a DataFrame of Spark they are a DataFrame."""
        given = self.coincide.parser.parse_args(_words(line))
        try:
            return self._run(given, cell)
        except CoincideError as error:  # with its place and a caret; a trace would say nothing about the rule
            raise UsageError(f"\n{error}") from None

    def _run(self, given: Any, cell: str) -> Any:
        book = loads(cell, given.language, "cell")
        for warning in book.warnings:
            print(warning.render(), file=sys.stderr)
        self._keep(given.rules, book)
        if given.frame is None:
            return book
        found = _found(book, self._table(given.frame), given)
        self._keep(given.out, found)
        if given.timeline and hasattr(found, "timeline"):
            from IPython.display import display

            display(found)  # type: ignore[no-untyped-call]
            return found.timeline(given.frame)
        return found

    def _keep(self, name: str | None, value: Any) -> None:
        if name is None:
            return
        if not name.isidentifier():
            raise InputError(f"'{name}' is no name of a variable")
        self.shell.user_ns[name] = value

    def _table(self, name: str) -> Any:
        if name in self.shell.user_ns:
            return self.shell.user_ns[name]
        known = [other for other in self.shell.user_ns if not other.startswith("_")]
        raise InputError(Diagnostic(f"there is no variable '{name}'", hint=nearest(name, known)))


def _words(line: str) -> list[str]:
    """A name with spaces stands in quotes, as in a shell."""
    try:
        return shlex.split(line)
    except ValueError as error:
        raise UsageError(f"the first line of the cell: {error}") from None


def _found(book: Rulebook, table: Any, given: Any) -> Any:
    mapping = _mapping(given)
    if type(table).__module__.partition(".")[0] != "pyspark":
        why = given.why or given.timeline
        return detect(book, table, given.until, mapping=mapping, keys=given.keys, why=why)
    if given.why or given.timeline:
        raise InputError("what led to a detection is not kept on Spark: leave out --why and --timeline")
    from coincide.spark import detect as detect_on_spark

    return detect_on_spark(book, table, until=given.until, mapping=mapping, keys=given.keys)


def _mapping(given: Any) -> FieldMapping:
    named = {"type": given.type, "time": given.time, "id": given.id, "unit": given.unit, "constant_type": given.every}
    return FieldMapping(**{field: value for field, value in named.items() if value is not None})
