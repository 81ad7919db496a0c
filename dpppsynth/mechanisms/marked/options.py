"""Options of marked tents."""

from dataclasses import replace
from typing import Any, ClassVar

from dpppsynth.contract.layer_options import COVARIATES, OFFSET, covariates_of, offset_of
from dpppsynth.contract.mark_settings import DESCRIBED, PROTECTION, described_marks, protection
from dpppsynth.contract.mechanism_options import Given, PointOptions
from dpppsynth.contract.mesh_options import RESOLUTION, require_fineness, tent_mesh
from dpppsynth.contract.settings import ALPHA, CAP, RELATION, USER, Setting
from dpppsynth.core.errors import InputError
from dpppsynth.mechanisms.marked.synthesizer import MarkedSynthesizer
from dpppsynth.privacy.relations import AddRemove, CappedRelation
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.mark_space import Marks

RADIUS = Setting(name="alpha", option="--alpha", kind=float, **ALPHA)


class MarkedOptions(PointOptions):
    """Options of points with types and times."""

    extra: ClassVar[tuple[Setting, ...]] = (
        RELATION,
        RADIUS,
        CAP,
        USER,
        *DESCRIBED,
        *PROTECTION,
        RESOLUTION,
        *OFFSET,
        COVARIATES,
    )

    def require(self, given: Given) -> None:
        """Refuse points without types and times, and combinations that are wrong on any domain; InputError."""
        super().require(given)
        self._marks(given)
        self.relation(given)

    def objects(self, given: Given, domain: Domain) -> dict[str, Any]:
        """Marks, relation, offset and covariates, and spacing or mesh."""
        require_fineness(given["resolution"], domain, spacing=given["spacing"])
        made: dict[str, Any] = {"marks": self._marks(given), "relation": self.relation(given)}
        made |= {"offset": offset_of(given, domain), "covariates": covariates_of(given, domain)}
        return made | ({} if given["resolution"] is None else {"mesh": tent_mesh(given, domain)})

    def relation(self, given: Given) -> CappedRelation:
        """The relation, with what it says of types and times."""
        marks, found = self._marks(given), super().relation(given)
        if isinstance(found, AddRemove):
            for name in ("protect_time", "protect_types"):
                given.require_none(name, "under add-remove points come and go with all their marks; leave it out")
            return found
        told = protection(given.values, marks, near=given["alpha"] is not None)
        return MarkedSynthesizer(1.0, marks=marks, relation=replace(found, **told)).neighbouring()

    def described(self, given: Given) -> Marks:
        """Types and times, as the columns of a file are read."""
        return self._marks(given)

    def _marks(self, given: Given) -> Marks:
        found = described_marks(given.values)
        if found is None:
            msg = f"types: {given.called} needs types, times or both, such as --types offence=burglary,theft"
            raise InputError(msg)
        return found


TENTS = MarkedOptions(MarkedSynthesizer, "marked")
