"""Settings of a plan as names and plain numbers: public parameters only, and never a number of points."""

from typing import Any

from dpppsynth.contract.mesh_sizes import fineness
from dpppsynth.contract.release_plan import ReleasePlan
from dpppsynth.spatial.mesh import Mesh


def settings(plan: ReleasePlan) -> dict[str, Any]:
    """Settings of one release by the default rules.

    Returns
    -------
    dict
        Those of these that the mechanism has: "bandwidth"; "mesh", "vertices" and "spacing" of what is measured or
        drawn; "sigma" and "length_scale" of the field that the budget is spent on; "noise", the scale of Laplace noise
        in points, or the standard deviation of Gaussian noise on smooth functionals; "sampler"; "field_vertices",
        "field_sigma", "length_scales" and "inference" of the posterior behind it. Lengths are in the domain's unit.

    Examples
    --------
    >>> from dpppsynth.spatial.domains import Window
    >>> from dpppsynth.synthesizers import LGCPSynthesizer
    >>> plan = LGCPSynthesizer(1.0, alpha=25.0).plan(Window.rectangle(0, 0, 670, 670), n=392)
    >>> {name: value for name, value in settings(plan).items() if name in ("vertices", "spacing", "field_sigma")}
    {'vertices': 49, 'spacing': (111.66666666666667, 111.66666666666667), 'field_sigma': 2.0}
    """
    statistic, estimator = plan.statistic, plan.estimator
    found: dict[str, Any] = {}
    for name in ("bandwidth", "sampler"):
        if hasattr(statistic, name):
            found[name] = getattr(statistic, name)
    if hasattr(statistic, "mesh"):
        found |= _size(statistic.mesh)
    if hasattr(statistic, "covariance"):
        found |= {"sigma": statistic.covariance.sigma, "length_scale": statistic.covariance.length_scale}
    if hasattr(statistic, "noise_scale"):
        found["noise"] = statistic.noise_scale
    return found if estimator is None else found | estimator.public_numbers()


def _size(mesh: Mesh) -> dict[str, Any]:
    return {"mesh": f"{mesh.kind}s", "vertices": len(mesh.vertices), "spacing": fineness(mesh)}
