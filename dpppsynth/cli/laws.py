"""Options, relation and synthesizers of local methods."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dpppsynth.cli import options as o
from dpppsynth.cli.options import Law, Method
from dpppsynth.core.errors import InputError

if TYPE_CHECKING:
    from dpppsynth.cli.job import Job
    from dpppsynth.cli.people import People
    from dpppsynth.contract.synthesizer import Synthesizer
    from dpppsynth.privacy import Relation
    from dpppsynth.spatial.domains import Domain, Window

RADIAL = (Method.DISK_AREA, Method.HYBRID_AREA)
# Their clients report in two rounds, and the second grid is made from the first reports.
TWO_ROUNDS = (Method.PRIVAG, Method.AAG)
LOCAL = (*(Method(law) for law in Law), *TWO_ROUNDS)


@dataclass(frozen=True, kw_only=True)
class Client:
    """Options of the local mechanism whose reports are drawn or counted."""

    mechanism: o.LawOption
    epsilon: o.EpsilonOption
    cells: o.GridOption = None
    radius: o.RadiusOption = None

    def __post_init__(self) -> None:
        if self.radius is not None and Method(self.mechanism) not in RADIAL:
            msg = f"radius: not an option of --mechanism {self.mechanism}; leave it out"
            raise InputError(msg)

    def on(self, domain: "Domain") -> Any:
        """The mechanism, on a window."""
        return _mechanism(Method(self.mechanism), _window(domain), self.epsilon, self.cells, self.radius)


def require_one_report(job: "Job") -> None:
    """Refuse options of other promises than that to the sender of one report.

    Raises
    ------
    InputError
    """
    if job.method not in LOCAL:
        return
    if job.relation is not None:
        what = "geo-indistinguishability" if job.method is Method.SEM_GEO_I else "local privacy"
        msg = f"relation: --method {job.method} promises {what} of every report; leave --relation out"
        raise InputError(msg)
    if job.alpha is not None:
        msg = f"alpha: --method {job.method} has no privacy radius; leave --alpha out"
        raise InputError(msg)
    if job.max_points_per_person != 1:
        msg = (
            "max_points_per_person: under local privacy a person sends one report, about one point; leave "
            "--max-points-per-person out, and keep one point of each person"
        )
        raise InputError(msg)


def require_no_levels(people: "People") -> None:
    """Refuse marks: whoever reports at a level would tell it.

    Raises
    ------
    InputError
    """
    if people.by is not None:
        msg = "by: local methods have one report for each person, and no marks; leave --by out"
        raise InputError(msg)


def local_relation(job: "Job") -> "Relation":
    """Local relation that `--method` promises to the sender of a report."""
    from dpppsynth.mechanisms.local.synthesizer import CellMechanism
    from dpppsynth.privacy.relations import GeoIndistinguishability, Local

    if job.method is not Method.SEM_GEO_I:
        return Local()
    return GeoIndistinguishability(CellMechanism.cells if job.cells is None else job.cells)


def local_synthesizer(job: "Job", domain: "Domain", n: int | None) -> "Synthesizer":
    """The mechanism that the options ask for; `n` is the public number of points.

    Raises
    ------
    InputError
        When the domain is a network, or an option is out of range.
    """
    made: Synthesizer = _mechanism(job.method, _window(domain), job.budget, job.cells, job.radius, n)
    return made


def _mechanism(
    method: Method, window: "Window", epsilon: float, cells: int | None, radius: int | None, n: int | None = None
) -> Any:
    from dpppsynth import local

    if method in TWO_ROUNDS:
        if cells is not None:
            msg = f"cells: --method {method} makes its grids by a rule; leave --cells out"
            raise InputError(msg)
        return (local.PrivAG if method is Method.PRIVAG else local.AdvancedAdaptiveGrid)(window, epsilon=epsilon)
    given: dict[str, Any] = {"epsilon": epsilon} | ({} if cells is None else {"cells": cells})
    if method is Method.UNIFORM_GRID:
        if cells is None and n is not None:
            return local.UniformGrid.sized(window, epsilon=epsilon, n=n)
        return local.UniformGrid(window, **given)
    if method in RADIAL:
        area = local.DiskAreaMechanism if method is Method.DISK_AREA else local.HybridUniformExponential
        return area(**given, radius=radius)
    return local.SEMGeoI(**given) if method is Method.SEM_GEO_I else local.MultidimensionalSquareWave(**given)


def _window(domain: "Domain") -> Any:
    from dpppsynth.spatial.domains import Window

    if not isinstance(domain, Window):
        msg = (
            "network: local methods divide a window into cells; give --window or --window-file, or take --method "
            "laplace or lgcp along the streets"
        )
        raise InputError(msg)
    return domain
