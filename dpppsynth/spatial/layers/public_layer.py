"""`PublicLayer`: the interface of all layers, and the checks that a layer fits a domain."""

from typing import ClassVar

import numpy as np
import shapely

from dpppsynth.core.arguments import real, shown
from dpppsynth.core.crs import NAMELESS, crs_label, same_crs
from dpppsynth.core.errors import InputError
from dpppsynth.core.wording import either
from dpppsynth.spatial.domains import LARGEST, Domain, Window
from dpppsynth.spatial.mesh import Floats

# Share of a domain that a layer may lack: slivers between neighbours that were digitised apart.
SLIVERS = 1e-6


class PublicLayer:
    """Base of layers: real numbers over the plane, of which some places may have none.

    Attributes
    ----------
    label : str
        Name in messages, such as that of a file.
    crs : str or None
        None where coordinates are taken to be the domain's.
    unnamed : str
        How to name the coordinate system of a source that could and does not, as a form such as "crs={}"; empty of
        others. It is never guessed.
    """

    label: str
    crs: str | None
    unnamed: str = ""
    # Form of a value in messages.
    unit: ClassVar[str] = "value"

    def __call__(self, xy: Floats) -> Floats:
        """(n,) values at coordinates (n, 2); NaN where there is none."""
        raise NotImplementedError

    def missing(self, domain: Domain) -> float:
        """Share of the domain's area, or length, that has no value; exact, since all of it is public."""
        raise NotImplementedError

    def require_crs(self, argument: str, domain: Domain) -> None:
        """Refuse a layer in other coordinates than the domain's, or in some that its source does not name.

        Raises
        ------
        InputError
        """
        if self.crs is None and self.unnamed and domain.crs is not None:
            raise InputError(nameless(argument, self.label, self.unnamed, domain.crs))
        if self.crs is None or same_crs(self.crs, domain.crs):
            return
        here = "has none" if domain.crs is None else f"is in {crs_label(domain.crs)}"
        msg = (
            f"{named(argument, self.label)} is in the coordinate system {crs_label(self.crs)}, and the domain {here}; "
            "re-project the layer to the domain's first."
        )
        raise InputError(msg)

    def require_whole(self, argument: str, domain: Domain) -> None:
        """Refuse a layer that is not in the domain's coordinates, or that lacks values somewhere in the domain.

        Raises
        ------
        InputError
        """
        self.require_crs(argument, domain)
        share = self.missing(domain)
        if share > SLIVERS:
            raise InputError(self.gap(argument, share, domain))

    def gap(self, argument: str, share: float, domain: Domain) -> str:
        """Message about a layer without values in a share of the domain."""
        place = "window" if isinstance(domain, Window) else "network"
        percent = f"{100 * share:.2g}" if share < 0.995 else f"{100 * share:.3g}"
        return f"{named(argument, self.label)} {percent} % of the {place} has no value; {self.filling(argument)}."

    def filling(self, argument: str) -> str:
        """Remedy for gaps."""
        return filling(argument)


def outside_value(fill: object) -> float:
    """Value where a layer has none, from what users state: NaN for none, so that gaps are refused.

    Raises
    ------
    InputError
    """
    if fill is None:
        return float("nan")
    number = real(fill)
    if number is None or not abs(number) <= LARGEST:
        msg = f"fill: needs a number such as 0 for places without a value, or None, got {shown(fill)}."
        raise InputError(msg)
    return float(number)


def nameless(argument: str, label: str, form: str, crs: str) -> str:
    """Message about a layer that does not say which coordinate system it is in, where the domain has one."""
    known = crs_label(crs)
    example = "EPSG:27700" if known == NAMELESS else known
    return (
        f"{named(argument, label)} does not say which coordinate system it is in, and the domain is in {known}; name "
        f"it, such as {form.format(example)}."
    )


def filling(argument: str) -> str:
    """Remedy for a layer with gaps: on the command line only an offset's are filled by an option."""
    return either("fill it, or state fill=0", "fill it" + ", or give --offset-fill 0" * argument.startswith("offset"))


def named(argument: str, label: str) -> str:
    """Beginning of a message about a layer that was given as an argument."""
    return f"{argument}:" if label == argument else f"{argument}: {label}:"


def covered(part: shapely.Geometry, domain: Domain) -> float:
    """Share of a domain's area or length inside a region."""
    size = shapely.area if isinstance(domain, Window) else shapely.length
    return float(np.clip(size(shapely.intersection(domain.geometry, part)) / size(domain.geometry), 0, 1))
