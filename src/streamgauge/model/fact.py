"""Facts: what holds, and from when until when."""

from dataclasses import dataclass

from streamgauge.model.terms import Triple


@dataclass(frozen=True, slots=True)
class Fact:
    """A triple that holds in [initial, final), ms; ``None`` is no bound (Taelman et al., ESWC 2016, section 4)."""

    triple: Triple
    initial: int | None = None
    final: int | None = None

    @property
    def static(self) -> bool:
        """Whether it holds always."""
        return self.initial is None and self.final is None

    def holds(self, at: int) -> bool:
        """Whether it holds at an instant (ms)."""
        return (self.initial is None or self.initial <= at) and (self.final is None or at < self.final)
