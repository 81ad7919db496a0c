"""`Estimator`: intensity from a released statistic, as post-processing, with settings stated on certificates."""

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np

from dpppsynth.contract.additive_noise import PrivateStatistic
from dpppsynth.contract.statistic import FileCheck, Statistic, require
from dpppsynth.core.types import JsonObject, JsonRead
from dpppsynth.core.wording import Rows
from dpppsynth.privacy.catalogue import LAYER, Code, Statement
from dpppsynth.spatial.covariates import EFFECT_SD, MEASURES, MOST, Design, is_name
from dpppsynth.spatial.domains import canonical_json
from dpppsynth.spatial.intensity import Intensity
from dpppsynth.spatial.marked_offset import AnyOffset
from dpppsynth.spatial.offset import Offset
from dpppsynth.spatial.public_layers import is_source

P_contra = TypeVar("P_contra", bound=Statistic, contravariant=True)


class Estimator(Generic[P_contra]):
    """Base of estimators for a kind of statistic: post-processing, which may fail and run again at no privacy cost.

    Attributes
    ----------
    kind : str
        Name on certificates.
    """

    kind: ClassVar[str]
    # Whether the intensity is an average over posterior draws, which `finish` brings into a release.
    has_posterior: ClassVar[bool] = False

    def require(self, plan: P_contra) -> None:
        """Refuse, from public parameters, a statistic that the estimator cannot use; InputError."""

    def intensity(self, statistic: PrivateStatistic[P_contra]) -> Intensity:
        """Intensity from a released statistic."""
        raise NotImplementedError

    def table_rows(self) -> Rows:
        """Rows on the estimator for the table of `dpppsynth check`; by default its JSON form."""
        return [("intensity", ", ".join(f"{name} {value}" for name, value in self.to_dict().items()))]

    def public_numbers(self) -> JsonObject:
        """Public numbers beyond those of the statistic, by name, for recommendations."""
        return {}

    def to_dict(self) -> JsonObject:
        """JSON form for a certificate."""
        return {"kind": self.kind}

    @property
    def following(self) -> Mapping[str, FileCheck]:
        """Files that the estimator adds to a release, besides a public offset, and their checks on opening."""
        return {}

    @classmethod
    def from_dict(cls, stated: JsonRead, plan: P_contra, offset: Offset | None) -> Self:
        """Estimator from its JSON form, for a statistic, with the offset of the release."""
        raise NotImplementedError

    @classmethod
    def as_stated(cls, stated: JsonRead, plan: P_contra) -> Self:
        """Estimator from its JSON form without the offset, which has its own file; types must match exactly.

        Raises
        ------
        InputError
            When anything but exactly its settings is stated.
        """
        found = cls.from_dict(stated, plan, None)
        found.require(plan)
        own = found.to_dict()
        if "offset" in own:
            own |= _offset_as_stated(stated)
        require(canonical_json(own) == canonical_json(stated), "an estimator states its settings, as they are written")
        return found


# Type-erased estimator of a plan: the mechanism's record has it fit the plan's measurement.
AnyEstimator = Estimator[Any]


# Files that estimators bring into a release. An offset of many cells is a raster; one file of the two holds it.
POSTERIOR, COVARIATES, OFFSET, OFFSET_RASTER = "posterior.nc", "covariates.nc", "offset.geojson", "offset.nc"
OFFSETS = frozenset({OFFSET, OFFSET_RASTER})
DIGEST = re.compile("[0-9a-f]{64}")
PUBLIC_ESTIMATOR = "public-estimator"


def offset_of(estimator: JsonRead) -> str | None:
    """Fingerprint of the public offset of a field or a draw."""
    offset = estimator["offset"]
    known = offset is None or (isinstance(offset, str) and DIGEST.fullmatch(offset) is not None)
    require(known, "the offset is null or a SHA-256")
    return None if offset is None else str(offset)


def offset_stated(offset: AnyOffset | None) -> JsonObject:
    """Entries of a certificate for an offset: its fingerprint, and its source where one is named."""
    if offset is None:
        return {"offset": None}
    return {"offset": offset.fingerprint} | ({"offset_source": offset.source} if offset.source else {})


def _offset_as_stated(estimator: JsonRead) -> JsonObject:
    """The same entries as they are stated; InputError for others."""
    found: JsonObject = {"offset": offset_of(estimator)}
    if "offset_source" not in estimator:
        return found
    require(found["offset"] is not None and is_source(estimator["offset_source"]), "an offset's source is a text")
    return found | {"offset_source": estimator["offset_source"]}


def assumed_of(estimator: JsonRead | None) -> tuple[Code, ...]:
    """Codes of the assumptions of an estimator, by its JSON form: that its settings and layers are public."""
    if estimator is None:
        return ()
    covariates = estimator.get("covariates") or {}
    layers = (
        ("offset", estimator.get("offset"), estimator.get("offset_source")),
        ("covariates", covariates.get("fingerprint"), covariates.get("source")),
    )
    stated = [
        Statement(LAYER, layer=name, sha256=digest, source=source or "unnamed")
        for name, digest, source in layers
        if digest is not None
    ]
    return (PUBLIC_ESTIMATOR, *stated)


def covariates_of(estimator: JsonRead) -> Design | None:
    """Covariates that a field states, without their values, which have a file of their own."""
    stated = estimator["covariates"]
    if stated is None:
        return None
    fields = {"names", "mean", "sd", "over", "prior_sd", "fingerprint"}
    known = isinstance(stated, dict) and stated.keys() - {"source"} == fields
    require(known, f"covariates state {', '.join(sorted(fields))}, and may state a source")
    require("source" not in stated or is_source(stated["source"]), "the source of covariates is a text")
    names, mean, sd = (stated[name] for name in ("names", "mean", "sd"))
    lists = all(isinstance(each, list) and len(each) == len(names) for each in (names, mean, sd))
    require(lists and 0 < len(names) <= MOST, f"there are 1 to {MOST} covariates, each with its mean and its sd")
    require(all(map(is_name, names)) and len(set(names)) == len(names), "covariates have names of their own")
    numbers = all(isinstance(each, float) and np.isfinite(each) for each in (*mean, *sd, stated["prior_sd"]))
    require(numbers and min(*sd, stated["prior_sd"]) > 0, "means are finite, and standard deviations positive")
    require(stated["prior_sd"] == EFFECT_SD, f"the prior standard deviation of effects is {EFFECT_SD:g}")
    # That over a window or a network follows from the domain beside it.
    over = {"offset"} if estimator.get("offset") is not None else {*MEASURES} - {"offset"}
    require(stated["over"] in over, f"covariates are standardised over the {' or '.join(sorted(over))}")
    digest = stated["fingerprint"]
    require(isinstance(digest, str) and DIGEST.fullmatch(digest) is not None, "the fingerprint is a SHA-256")
    source = stated.get("source", "")
    return Design(tuple(names), tuple(mean), tuple(sd), stated["over"], stated["prior_sd"], None, digest, source)


def covariate_rows(covariates: Design | None) -> Rows:
    """Rows of a table with the covariates and their standardisation."""
    if covariates is None:
        return []
    each = (
        f"{name} (mean {mean:.4g}, sd {sd:.4g})"
        for name, mean, sd in zip(covariates.names, covariates.mean, covariates.sd, strict=True)
    )
    prior = f"normal effects of sd {covariates.prior_sd:g} per sd over the {covariates.over}"
    return [("covariates", "; ".join(each)), ("effects", f"{prior}, fingerprint {covariates.fingerprint[:12]}")]


def offset_rows(offset: AnyOffset | None) -> Rows:
    """Row of a table with the fingerprint of a public offset, where there is one, and its total in the domain."""
    if offset is None:
        return []
    totals = [offset.total] if isinstance(offset, Offset) else offset.totals
    known = ", ".join(f"{each:,.6g}" for each in totals if each is not None)
    return [("offset", f"{f'total {known} in the domain, ' if known else ''}fingerprint {offset.fingerprint[:12]}")]
