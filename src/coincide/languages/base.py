"""What the compiler asks of a language."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from coincide.detection.base import Detector, DetectorPlan
from coincide.errors import Diagnostic
from coincide.lang.shared.about import About
from coincide.lang.shared.reads import Reads
from coincide.lang.shared.wants import Slot, Wants
from coincide.source import SourceText

if TYPE_CHECKING:
    from coincide.lang.shared.eventsets import Limit


class Language(ABC):
    """A file's definitions are the language's own frozen data. What most languages have no use for has a default."""

    name: ClassVar[str]
    versioned: ClassVar[bool] = False
    """May a name be defined again, in another file of the language?"""
    forms: ClassVar[tuple[str, ...]] = ()
    """What `printed` can write, where there are several."""
    untyped: ClassVar[bool] = False
    """Does it read records that have no type?"""
    several_keys: ClassVar[bool] = False
    """Has an event several keys where the field of a key has several values?"""
    orders_across_keys: ClassVar[bool] = False
    """Does the order of what it makes at one instant go by what it makes for other keys?"""
    forgetful: ClassVar[bool] = False
    """Does a detection name only the event that completes it?"""

    names_last: ClassVar[bool] = False
    """Does it give names itself, those that are free when all others are known?"""

    @abstractmethod
    def parse(self, source: SourceText) -> Any:
        """Definitions of one file; RuleError at the first error."""

    @abstractmethod
    def print_file(self, file: Any) -> str: ...

    def printed(self, file: Any, form: str) -> str:
        """In one of the `forms`."""
        return self.print_file(file)

    @abstractmethod
    def names(self, file: Any) -> Iterable[Diagnostic]:
        """Each name of a detector that the file defines (as the diagnostic's `name`), as the error that it is if the
        name is taken."""

    @abstractmethod
    def detectors(self, files: Sequence[tuple[SourceText, Any]]) -> Sequence[Sequence[Detector]]:
        """The detectors of all its files together, a list for each file, in order of definition."""

    def detectors_beside(self, files: Sequence[tuple[SourceText, Any]], taken: Collection[str]) -> Sequence[Sequence[Detector]]:
        """Likewise, where detectors of other languages have taken these names."""
        return self.detectors(files)

    def room(self, detectors: Sequence[Detector]) -> int:
        """So many numbers stay free before its first detector, where others come before it: for definitions that set timers
        before any detector does."""
        return 0

    def linked(self, own: Sequence[Detector], everyone: Sequence[Detector]) -> Sequence[Detector]:
        """Its own detectors, now that all are known: one for each."""
        return own

    @abstractmethod
    def plans(self, detectors: Sequence[Detector]) -> list[DetectorPlan]:
        """Plans for detectors of one stage of the graph."""

    @abstractmethod
    def warnings(self, detectors: Sequence[Detector]) -> list[Diagnostic]: ...

    def remarks(self, detector: Detector) -> Iterable[Diagnostic]:
        """What only those are told who ask for a check: reasons why it may never detect anything."""
        return ()

    def streaming_warnings(self, detector: Detector) -> Iterable[Diagnostic]:
        """What matters only where the input has no end."""
        return ()

    def endless_faults(self, detector: Detector) -> Iterable[Diagnostic]:
        """Why it cannot run where the input has no end."""
        return ()

    @abstractmethod
    def reads(self, detector: Detector) -> Reads:
        """What a definition reads of events, and where it says so."""

    def wants(self, detector: Detector) -> Wants:
        """What a definition waits for, event by event; whoever says no more than which types it reads waits for one of each."""
        inputs = detector.inputs
        return Wants(tuple(Slot(type) for type in sorted((inputs.external or frozenset()) | inputs.detections)))

    def waits_by(self, detector: Detector) -> str:
        """What its language calls that which makes a detection due."""
        return "timer"

    def about(self, detector: Detector) -> About:
        """What a definition says of itself to those who read what it found."""
        return About(detector.name)

    def printed_digest(self, detector: Detector) -> str:
        """By which keys of detections know the definition that made them: that of its text, where all of a text counts."""
        return detector.digest

    def explained(self, detector: Detector) -> Iterable[tuple[str, str]]:
        """Rows for `explain`: what it is about, and the text."""
        return ()

    def left_out(self, files: Sequence[tuple[SourceText, Any]]) -> list[Diagnostic]:
        """What is wrong with definitions of its files that were left out, where files are read so (`Reading.keep_going`)."""
        return []

    def limits(self, file: Any) -> Sequence[Limit]:
        """Of events, for all detectors that are loaded with the file."""
        return ()

    def sources(self, file: Any) -> Sequence[str]:
        """Publishers that the file names: policies wait for them."""
        return ()
