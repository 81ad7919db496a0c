"""`Result`: interface of releases to all tools."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol, Self, TypeVar, cast, runtime_checkable

from dpppsynth.core.errors import InputError
from dpppsynth.core.progress import Progress, ProgressLike
from dpppsynth.core.randomness import RngLike
from dpppsynth.core.types import JsonObject
from dpppsynth.core.wording import Rows
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.shuffling import ShuffledPrivacy
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.intensity import Intensity
from dpppsynth.spatial.mark_space import Marks
from dpppsynth.spatial.mesh import Floats
from dpppsynth.spatial.patterns import PointPattern

R_co = TypeVar("R_co", bound="Result", covariant=True)


class Saved(Protocol):
    """The files of a saved release, or of one level of it."""

    @property
    def certificate(self) -> JsonObject:
        """Certificate of the whole release."""

    @property
    def statistic(self) -> JsonObject:
        """JSON form of the released numbers."""

    def content(self, name: str) -> bytes | None:
        """A file, if the certificate lists it."""

    def patterns(self) -> Iterator[PointPattern]:
        """Synthetic patterns, without the mark of levels."""


class Result(Protocol):
    """A certified result: everything in it is public."""

    @property
    def mechanism(self) -> str:
        """Name of the mechanism, for instance "lgcp-tents"."""

    @property
    def warning(self) -> str | None:
        """Reason why the result must not be released, if there is one."""

    @property
    def domain(self) -> Domain:
        """Public window or network."""

    @property
    def guarantee(self) -> Guarantee:
        """Privacy guarantee."""

    @property
    def shuffled(self) -> ShuffledPrivacy | None:
        """Second guarantee for reports mixed by an honest shuffler, where one was requested."""

    @property
    def noise(self) -> str:
        """Sampler and entropy of the randomness that protects the points."""

    @property
    def seeded(self) -> bool:
        """True when the randomness can be reproduced: then the release is not private."""

    @property
    def entry(self) -> str | None:
        """Name of its authorisation in a ledger."""

    @property
    def snap(self) -> float | None:
        """Public tolerance within which points were moved onto the domain; None where none was stated."""

    @property
    def parts(self) -> "Mapping[str, Result]":
        """The result of each level of a mark, or the one result under an empty name."""

    def parameters(self) -> JsonObject:
        """Public parameters, as they stand on the certificate."""

    def paid_files(self) -> dict[str, str]:
        """Text of the files that the budget was spent on, by name; further sampling leaves them unchanged."""

    def certificate_dict(self) -> JsonObject:
        """The certificate, saved or not, listing the paid files alone."""

    @property
    def kept(self) -> Path | None:
        """Folder of the paid files, written as soon as they were measured."""

    def keep(self, path: Path) -> Self:
        """Write the paid files to a new folder, durably; `save` completes it."""

    def save(self, path: str | Path, *, progress: ProgressLike = None) -> Path:
        """Write the release to a new or empty folder."""


class MechanismResult(Result, Protocol):
    """The result of one mechanism."""

    def finish(self, rng: RngLike, say: Progress) -> Self:
        """The release after inference, once the measurement is recorded in the ledger."""

    def reopened(self, saved: Saved) -> Self:
        """The release with inference results from its saved files."""


class ResultType(Protocol[R_co]):
    """Class of the results of a mechanism."""

    # What was measured, and the estimator, are of the classes that the mechanism's own results hold.
    def of(self, mechanism: str, measured: Any, estimator: Any, *, entry: str | None = None) -> R_co:
        """Release of a measured statistic, before any inference."""


class ResultByLevels(Result, Protocol):
    """Results for the levels of a mark, under one certificate."""

    @property
    def by(self) -> str:
        """Name of the mark."""

    @property
    def releases(self) -> Mapping[str, Result]:
        """The result of each level."""

    def finish(self, rng: RngLike, say: Progress) -> Self:
        """The release after inference at each level."""

    @property
    def patterns(self) -> list[PointPattern]:
        """Synthetic patterns that were paid for one by one, marked by level."""

    def sample(self, m: int = 1, rng: RngLike = None) -> list[PointPattern]:
        """Draw synthetic patterns, marked by level."""


# Levels of a mark as they stand in files.
Values = tuple[int, ...] | tuple[str, ...]
# Class of the results of releases by the levels of a mark: mark, results, joint guarantee, ledger entry and levels.
StratifiedType = Callable[[str, Mapping[str, Result], Guarantee, str | None, Values], ResultByLevels]


@runtime_checkable
class HeatMapped(Protocol):
    """Result that is drawn and scored as a heat map."""

    @property
    def domain(self) -> Domain:
        """Public window."""

    @property
    def user(self) -> str | None:
        """Mark of persons; None where every point is a person."""

    def heatmap(self, bandwidth: float | None = None) -> Floats:
        """(nx, ny) heat map with mass 1; `bandwidth` of its filter in the window's unit, None for the usual one."""

    def blur(self, bandwidth: float | None = None) -> str:
        """Width of the filter, with its unit."""

    def made(self) -> Rows:
        """Table rows on how the heat map was computed."""

    def exact_maps(self, original: PointPattern) -> "ExactMaps":
        """Comparison with the original pattern; as sensitive as the points."""


class Marked(Protocol):
    """A result whose points have types or times."""

    @property
    def domain(self) -> Domain:
        """Public window or network."""

    @property
    def marks(self) -> Marks:
        """Public types and range of times."""

    @property
    def intensity(self) -> Any:
        """Callable at points (n, 2), also `time=` or `type=`."""

    def marginal(self, mark: str, level: float = 0.9) -> Any:
        """Table of expected points by type, or around each instant, with credible intervals."""


class ExactMaps(Protocol):
    """Heat maps (nx, ny) of mass 1 under the same filter: of the original, as released, and of an even spread."""

    exact: Floats
    released: Floats
    uniform: Floats
    # Squares along each side of the window between which mass moves, and the unit of distances.
    side: ClassVar[int]
    unit: ClassVar[str]

    def moved(self, estimate: Floats) -> float:
        """Earth mover's distance of an estimate from the exact map."""


Cell = str | float


class CountTable(NamedTuple):
    """Counts of a release as a table.

    Attributes
    ----------
    header : list of str
        Names of the columns.
    rows : iterator over lists
        One for each cell, and for each level of a mark.
    figures : dict
        Bounds on the errors, by name.
    by : str or None
        Mark over whose levels counts were made smoother.
    """

    header: list[str]
    rows: Iterator[list[Cell]]
    figures: dict[str, int]
    by: str | None = None


@runtime_checkable
class Counted(Protocol):
    """A result with counts whose errors are bounded."""

    def count_table(self, *, filtered: bool = False) -> CountTable:
        """The counts, and smoothed ones where `filtered`; InputError where there is nothing to smooth over."""


class FitSummary(NamedTuple):
    """Diagnostics of the fits behind a posterior: the worst values among fits with at least a twentieth of the draws.

    Attributes
    ----------
    rhat, ess : float or None
        Largest R-hat and smallest effective sample size of NUTS.
    pareto_k, coverage : float or None
        Of Laplace approximations, as `dpppsynth.inference.field_inference.FitNotes` has them.
    """

    rhat: float | None = None
    ess: float | None = None
    pareto_k: float | None = None
    coverage: float | None = None


# Where nothing was inferred.
UNFITTED = FitSummary()


def released_fit(release: Result) -> FitSummary:
    """Diagnostics of a release; none known where nothing was inferred."""
    found: FitSummary = getattr(release, "fit", UNFITTED)
    return found


def released_intensity(release: Result) -> Intensity:
    """The intensity that a release holds, or an InputError where it holds none."""
    intensity: Intensity | None = getattr(release, "intensity", None)
    if intensity is None:
        msg = f"release: a {release.mechanism} release holds no intensity; its plan has to say what a trial shows."
        raise InputError(msg)
    return intensity


def require_heat_map(release: object, remedy: str = "") -> HeatMapped:
    """The release, or an InputError where it has no heat map."""
    if not isinstance(release, HeatMapped):
        msg = f"release: needs a HeatmapRelease, got {type(release).__name__}{'; ' if remedy else ''}{remedy}."
        raise InputError(msg)
    return release


def require_marked(release: object) -> Marked:
    """The release, or an InputError where its points have no types or times."""
    if not has_marks(release):
        msg = f"release: needs a MarkedRelease, got {type(release).__name__}; MarkedSynthesizer makes one."
        raise InputError(msg)
    found: Any = release
    return cast(Marked, found)


def marks_of(release: object) -> Marks | None:
    """Types and times of a result's points; None where they have none."""
    return require_marked(release).marks if has_marks(release) else None


def has_marks(release: object) -> bool:
    """Whether a result's points have types or times; nothing is inferred to find out."""
    return hasattr(type(release), "marginal") and hasattr(type(release), "marks")
