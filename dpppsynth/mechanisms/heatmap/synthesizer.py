"""`HeatmapSynthesizer`: persons' distributions aggregated on a pyramid of cells (docs/theory/heatmaps.md)."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from dpppsynth.contract.object_options import require_window
from dpppsynth.contract.release_plan import ReleasePlan
from dpppsynth.contract.settings import EPSILON, EXPERT, PRIVACY, RELATION, ParsedOptions, Setting, setting
from dpppsynth.contract.synthesizer import Synthesizer, require_true_lengths
from dpppsynth.core.arguments import one_of, positive, shown, whole, whole_number
from dpppsynth.core.errors import InputError
from dpppsynth.core.wording import either
from dpppsynth.mechanisms.heatmap.bound import (
    COMMON_W,
    DEEPEST,
    FITS,
    VARIANTS,
    advise_decay,
    grid_depth,
    measured_depth,
    require_decay,
    require_measure,
    require_plain,
)
from dpppsynth.mechanisms.heatmap.release import HeatmapRelease, Reconstruction
from dpppsynth.mechanisms.heatmap.statistic import HeatmapStatistic
from dpppsynth.models.regular_meshes import MOST_VERTICES, grid_cells, regular_squares
from dpppsynth.privacy.relations import AddRemove, AddRemovePerson, Relation
from dpppsynth.spatial.domains import Domain, Window
from dpppsynth.spatial.mesh import Mesh


def _two_numbers(text: str) -> tuple[int, int]:
    try:
        nx, ny = map(int, text.split(","))
    except ValueError:
        msg = f"shape: needs two whole numbers of cells, along x and y, such as 256,256; got {text!r}"
        raise InputError(msg) from None
    return nx, ny


NO_USER = Setting(name="no_user", kind=bool, help="Take every point for a person of its own", panel=PRIVACY)


@dataclass(frozen=True)
class HeatmapSynthesizer(Synthesizer[HeatmapRelease]):
    """Sparse aggregation of persons' distributions in earth mover's distance, with pure epsilon-privacy of a person.

    A person may have any number of points, all of which are hidden at once: each person counts once, spread evenly over
    their points. The grid can be fine, for noise only enters where many persons are. Numbers of persons and of points
    are secret, and nothing needs to be guessed.

    Parameters
    ----------
    epsilon : float
    shape : (int, int)
        Size of the picture: cells along x and y of the window's bounding box, about two million at most. The pyramid is
        that of the next power of two; its cells outside the window are publicly empty.
    measure : int, optional
        Cells along a side of that pyramid on the finest level that is counted, a power of two. None takes the level
        whose number of cells in the window is nearest to `18 sqrt(epsilon * expected_n)`, at most 128 x 128 cells, for
        1000 persons unless `expected_n` is given to `plan`, `check` or `release`.
    w : int
        Cells kept per level of the published variants: about the number of places that matter.
    variant : {"two-level", "practical", "theory"}
        "two-level" counts all cells of the finest level and of one whose cells are four times as large, with half of
        the budget each. The published ones look into the fullest cells alone: "practical" leaves out the levels with
        fewer than about `w` cells; "theory" is the one that the error bound is proved for. All are equally private.
    decay : float, optional
        In (0, 1], of the published variants' budgets away from the level with about `w` cells. None takes the best one.
    user : str or None
        Mark of the pattern that identifies persons, such as a column of pseudonyms. None where every point is a person
        of its own.

    fit : {"field", "least-squares", "l1"}
        Fit of a distribution to the noised counts, at no privacy cost: a log-Gaussian field behind all that was looked
        at, weighted least squares, or as published, for published variants. `release.refit` changes it afterwards.

    References
    ----------
    Ghazi, He, Kohlhoff, Kumar, Manurangsi, Navalpakkam and Valliappan (2023), Differentially private heatmaps, AAAI.

    Examples
    --------
    >>> from dpppsynth.spatial.domains import Window
    >>> window = Window.rectangle(0, 0, 1000, 1000)
    >>> HeatmapSynthesizer(1.0, shape=(64, 64), user="patient").check(window).relation
    AddRemovePerson(user='patient')
    """

    epsilon: float = setting(**EPSILON)
    _: KW_ONLY
    shape: tuple[int, int] = setting(
        (256, 256), help="Cells of the picture along x and y", kind=str, metavar="NX,NY", convert=_two_numbers
    )
    measure: int | None = setting(
        None,
        help="Cells along a side of the finest level that is counted, a power of two",
        otherwise="by epsilon and the expected number of persons",
    )
    w: int = setting(COMMON_W, help="Cells kept of each level, by the published variants")
    variant: str = setting(VARIANTS[0], help="Levels that are measured", choices=VARIANTS, panel=EXPERT)
    decay: float | None = setting(
        None, help="Decay of the budget from level to level", otherwise="the variant's", panel=EXPERT
    )
    user: str | None = setting(
        "user",
        help="Column that tells whose point a row is",
        metavar="COLUMN",
        panel=PRIVACY,
        parts=(RELATION, NO_USER),
    )
    fit: str = setting(FITS[0], help="How noised counts are fitted, at no cost", choices=FITS, panel=EXPERT)

    refused: ClassVar[Mapping[str, str]] = {
        "alpha": "protects persons wherever their points lie, without a radius",
        "max_points_per_person": "protects all points of a person, however many",
    }
    distance: ClassVar[str] = (
        "Distance: earth mover's distance between the heat map of the surrogate's persons and the private one, both "
        "smoothed, on 32 x 32 squares: how far mass lies from its place on average, as a share of the window's sides. "
        "In brackets that of a uniform map, which needs no data."
    )

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon)
        object.__setattr__(self, "shape", _cells(self.shape))
        object.__setattr__(self, "w", whole("w", self.w, 1))
        one_of("variant", self.variant, VARIANTS)
        if self.measure is not None:
            require_measure(self.measure, grid_depth(self.shape))
        require_plain(self.variant, self.w, self.decay)
        if self.decay is not None:
            object.__setattr__(self, "decay", require_decay(self.decay))
            advise_decay(self.decay)
        Reconstruction(self.fit)
        self.neighbouring()

    def neighbouring(self) -> Relation:
        """Addition or removal of one person with all their points, or of one point where every point is a person."""
        return AddRemove() if self.user is None else AddRemovePerson(self.user)

    @classmethod
    def require_options(cls, options: ParsedOptions) -> None:
        kind = "add-remove" if options["no_user"] else "add-remove-person"
        if options["relation"] not in (None, kind):
            promised = f"{kind} of points" if options["no_user"] else kind
            msg = (
                f"relation: {options.called} promises {promised}, not {options['relation']}; leave --relation out, or "
                "take another method"
            )
            raise InputError(msg)
        if options["no_user"] and options["user"] is not None:
            msg = "user: --no-user takes every point for a person of its own; give one of the two"
            raise InputError(msg)
        if options["user"] == "":
            msg = "user: needs the name of a column; --no-user takes every point for a person of its own"
            raise InputError(msg)
        super().require_options(options)

    @classmethod
    def plain(cls, options: ParsedOptions) -> dict[str, Any]:
        return super().plain(options) | ({"user": None} if options["no_user"] else {})

    @classmethod
    def objects(cls, options: ParsedOptions, domain: Domain) -> dict[str, Any]:
        require_window(
            domain,
            f"{options.called} measures squares of the plane; give --window or --window-file, or take --method laplace "
            "or lgcp along the streets",
        )
        return {}

    @classmethod
    def user_column(cls, options: ParsedOptions) -> str | None:
        return None if options["no_user"] else super().user_column(options)

    @classmethod
    def require_size(cls, options: ParsedOptions, n: int | None, by: str | None) -> None:
        if n is not None:
            msg = (
                "n: under add-remove-person the numbers of persons and points are secret; leave --n out (a guess of "
                "the persons, for rehearse, is --expected-n)"
            )
            raise InputError(msg)
        if by is not None:
            msg = (
                "by: a person may have points at several levels, and each level would spend the budget again; leave "
                "--by out, and make one release for each level with a budget of its own"
            )
            raise InputError(msg)

    def plan(self, domain: Domain, *, n: int | None = None, expected_n: float | None = None) -> ReleasePlan:
        """Make the release plan from public parameters alone.

        Parameters
        ----------
        domain : Window
        n : None
            Secret here.
        expected_n : float, optional
            Public guess of the number of persons, for `measure` and rehearsals.
        """
        require_true_lengths(domain)
        if not isinstance(domain, Window):
            msg = "domain: heat maps are drawn on windows; on a network take LaplaceSynthesizer or LGCPSynthesizer."
            raise InputError(msg)
        if n is not None:
            msg = "n: it is secret where persons are added or removed; leave it out."
            raise InputError(msg)
        guess = None if expected_n is None else float(positive("expected_n", expected_n))
        nx, ny = self.shape
        mesh = regular_squares(domain, shape=(nx + 1, ny + 1))
        settings: dict[str, Any] = {"w": self.w, "variant": self.variant, "decay": self.decay, "user": self.user}
        finest = self._finest(mesh, guess)
        measured = HeatmapStatistic(mesh, guess, float(self.epsilon), finest=finest, **settings)
        return ReleasePlan("heatmap", measured, Reconstruction(self.fit))

    def _finest(self, mesh: Mesh, guess: float | None) -> int | None:
        """Side of the finest measured level; None where its cells are those of the grid."""
        depth = grid_depth(self.shape)
        if self.measure is None:
            cells = [len(np.unique(grid_cells(mesh) >> depth - level, axis=0)) for level in range(depth + 1)]
            settled = measured_depth(cells, self.epsilon, guess)
        else:
            settled = require_measure(self.measure, depth)
        return None if settled == depth else 2**settled


def _cells(shape: Any) -> tuple[int, int]:
    """Two numbers of cells, at least two and not too many in all."""
    given = [whole_number(side) for side in shape] if isinstance(shape, tuple | list) else []
    sides = [side for side in given if side is not None and side >= 1]
    fit = len(given) == len(sides) == 2 and 2 <= max(sides) <= 2**DEEPEST
    if not fit or (sides[0] + 1) * (sides[1] + 1) > MOST_VERTICES:
        msg = (
            f"shape: needs two numbers of cells, at most {2**DEEPEST} and about {MOST_VERTICES} in all, got "
            f"{_words(shape)}; such as {_pair('256', '256')}."
        )
        raise InputError(msg)
    return sides[0], sides[1]


def _words(shape: Any) -> str:
    return _pair(*map(shown, shape)) if isinstance(shape, tuple | list) else shown(shape)


def _pair(*sides: str) -> str:
    return either(f"({', '.join(sides)})", ",".join(sides))
