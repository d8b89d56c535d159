"""What Amit (Adi, Etzion: "Amit - The Situation Manager") offers to the compiler."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from coincide.detection.base import Detector, DetectorPlan, Inputs
from coincide.detection.situation.plan import plans as situation_plans
from coincide.detection.situation.support import loop_reasons
from coincide.errors import Diagnostic
from coincide.lang.amit.arrange import arranged, partitions
from coincide.lang.amit.definition import File, Situation
from coincide.lang.amit.parse import parse as parse_xml_file
from coincide.lang.amit.print import print_file as print_xml
from coincide.lang.amit.print import resolved_text
from coincide.lang.amit.reads import reads_of
from coincide.lang.amit.resolve import Resolved, resolve
from coincide.lang.amit.templates import expand
from coincide.lang.amit.wants import wants_of
from coincide.lang.amit.warnings import warnings_of
from coincide.lang.shared.reads import Reads
from coincide.lang.shared.wants import Wants
from coincide.languages.base import Language
from coincide.source import SourceText


class Amit(Language):
    name = "amit"
    forms = ("xml", "yaml", "python")

    def parse(self, source: SourceText) -> File:
        """YAML's library is imported with the first file that needs it."""
        if not source.name.endswith(".yaml"):
            return parse_xml_file(source)
        from coincide.lang.amit.yaml import parse_file

        return parse_file(source)

    def print_file(self, file: File) -> str:
        """In the form that the file was written in."""
        return self.printed(file, file.form)

    def printed(self, file: File, form: str) -> str:
        """As `xml`, as `yaml`, or as `python`, where templates are written out."""
        if form == "yaml":
            from coincide.lang.amit.print_yaml import print_file as print_yaml

            return print_yaml(file)
        if form == "python":
            from coincide.lang.amit.print_python import print_definitions

            return print_definitions(expand([file])[0])
        return print_xml(file)

    def names(self, file: File) -> Iterator[Diagnostic]:
        """Situations that the file itself writes out; what templates make is compared when all files are known."""
        for entry in file.items:
            if isinstance(entry, Situation):
                message = f"event or situation '{entry.name}' is defined twice"
                yield Diagnostic(message, entry.span, name=entry.name)

    def detectors(self, files: Sequence[tuple[SourceText, File]]) -> list[list[Detector]]:
        """Definitions of all files are read as one."""
        by_file = expand([file for _, file in files])
        definitions = [definition for file in by_file for definition in file]
        situations = arranged(resolve(definitions), definitions)
        keys = partitions(situations)
        found = {s.name: _detector(s, keys[s.name]) for s in situations}
        return [[found[d.name] for d in file if isinstance(d, Situation)] for file in by_file]

    def room(self, detectors: Sequence[Detector]) -> int:
        """A number for each lifespan: lifespans see an event before all situations, and after what is defined before them."""
        lowest: int = min(d.definition.lifespan_number for d in detectors)
        return -lowest

    def linked(self, mine: Sequence[Detector], everyone: Sequence[Detector]) -> list[Detector]:
        """With the numbers of lifespans counted back from the first situation."""
        first = min((d.order for d in mine), default=0)
        return [replace(d, definition=replace(d.definition, lifespan_number=first + d.definition.lifespan_number)) for d in mine]

    def explained(self, detector: Detector) -> Iterator[tuple[str, str]]:
        """Why no compiled loop runs over its rows."""
        reasons = loop_reasons([detector.definition])
        if reasons:
            text = "in the kernel tier, rows that concern nobody are left out and the others interpreted"
            yield f"loop of {detector.name}", f"none: {text}, because of {'; '.join(r.partition(': ')[2] or r for r in reasons)}"

    def plans(self, detectors: Sequence[Detector]) -> list[DetectorPlan]:
        return situation_plans(detectors)

    def warnings(self, detectors: Sequence[Detector]) -> list[Diagnostic]:
        return warnings_of([d.definition for d in detectors])

    def reads(self, detector: Detector) -> Reads:
        return reads_of(detector.definition)

    def waits_by(self, detector: Detector) -> str:
        return f"lifespan {detector.definition.lifespan.name}"

    def wants(self, detector: Detector) -> Wants:
        return wants_of(detector.definition)


def _detector(situation: Resolved, partition: tuple[str, ...] | None) -> Detector:
    return Detector(
        name=situation.name,
        language="amit",
        definition=situation,
        inputs=Inputs(situation.reads, situation.reads),
        outputs=(situation.name,),
        partition=partition,
        text=partial(resolved_text, situation),
        former=situation.former_digest,
        kind="situation",
        span=situation.situation.span,
    )


LANGUAGE = Amit()
