"""Options, relation and synthesizer of `--method heatmap`."""

from enum import StrEnum
from typing import TYPE_CHECKING, Any

from dpppsynth.cli.options import Method, Neighbours
from dpppsynth.core.errors import InputError

if TYPE_CHECKING:
    from dpppsynth.cli.job import Job
    from dpppsynth.cli.people import People
    from dpppsynth.mechanisms.heatmap.synthesizer import HeatmapSynthesizer
    from dpppsynth.privacy import Relation
    from dpppsynth.spatial.domains import Domain

# The column that tells the persons, as in Python.
USER = "user"


def user_column(job: "Job") -> str | None:
    """Column that tells the persons; None where every point is one."""
    return None if job.no_user else job.user or USER


def heatmap_relation(job: "Job") -> "Relation":
    """A person comes or goes with all their points, or a point where every one is a person."""
    from dpppsynth.privacy import AddRemove, AddRemovePerson

    user = user_column(job)
    return AddRemove() if user is None else AddRemovePerson(user)


def require_unit(job: "Job") -> None:
    """Refuse options of promises that the method does not make: to persons, or to points.

    Raises
    ------
    InputError
    """
    if job.method is Method.HEATMAP:
        _require_persons(job)
    elif job.relation is Neighbours.ADD_REMOVE_PERSON:
        named = [f"--{name.replace('_', '-')}" for name in ("user", "no_user") if getattr(job, name)]
        msg = (
            "relation: add-remove-person is what --method heatmap promises; other methods protect a number of points "
            f"per person: take add-remove with --max-points-per-person{''.join(f', without {each}' for each in named)}"
        )
        raise InputError(msg)


def _require_persons(job: "Job") -> None:
    kind = Neighbours.ADD_REMOVE if job.no_user else Neighbours.ADD_REMOVE_PERSON
    if job.relation not in (None, kind):
        msg = (
            f"relation: --method heatmap promises {kind}{' of points' if job.no_user else ''}, not {job.relation}; "
            "leave --relation out, or take another method"
        )
        raise InputError(msg)
    if job.alpha is not None:
        msg = "alpha: --method heatmap protects persons wherever their points lie, without a radius; leave --alpha out"
        raise InputError(msg)
    if job.max_points_per_person != 1:
        msg = (
            "max_points_per_person: --method heatmap protects all points of a person, however many; leave "
            "--max-points-per-person out"
        )
        raise InputError(msg)
    if job.user is not None and job.no_user:
        msg = "user: --no-user takes every point for a person of its own; give one of the two"
        raise InputError(msg)
    if job.user == "":
        msg = "user: needs the name of a column; --no-user takes every point for a person of its own"
        raise InputError(msg)


def require_free_of_levels(people: "People") -> None:
    """Refuse sizes that are secret, and marks that would cut a person in parts.

    Raises
    ------
    InputError
    """
    if people.n is not None:
        msg = (
            "n: under add-remove-person the numbers of persons and points are secret; leave --n out (a guess of the "
            "persons, for rehearse, is --expected-n)"
        )
        raise InputError(msg)
    if people.by is not None:
        msg = (
            "by: a person may have points at several levels, and each level would spend the budget again; leave --by "
            "out, and make one release for each level with a budget of its own"
        )
        raise InputError(msg)


def heatmap_synthesizer(job: "Job", domain: "Domain") -> "HeatmapSynthesizer":
    """The synthesizer that the options ask for.

    Raises
    ------
    InputError
        When the domain is a network, or an option is out of range.
    """
    from dpppsynth.linear_network import LinearNetwork
    from dpppsynth.mechanisms.heatmap.synthesizer import HeatmapSynthesizer

    if isinstance(domain, LinearNetwork):
        msg = (
            "network: --method heatmap measures squares of the plane; give --window or --window-file, or take --method "
            "laplace or lgcp along the streets"
        )
        raise InputError(msg)
    stated = {"w": job.w, "variant": job.variant, "decay": job.decay, "fit": job.fit}
    options: dict[str, Any] = {
        name: str(value) if isinstance(value, StrEnum) else value for name, value in stated.items() if value is not None
    }
    if job.shape is not None:
        options["shape"] = _shape(job.shape)
    return HeatmapSynthesizer(job.budget, user=user_column(job), **options)


def _shape(text: str) -> tuple[int, int]:
    try:
        nx, ny = map(int, text.split(","))
    except ValueError:
        msg = f"shape: needs two whole numbers of cells, along x and y, such as 256,256; got {text!r}"
        raise InputError(msg) from None
    return nx, ny
