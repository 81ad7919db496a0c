"""Spending of a budget: authorise, measure, write the paid files to disk, record in the ledger, then infer."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from dpppsynth.contract.account import Account, Planned, Subset, points_of
from dpppsynth.contract.result import Result
from dpppsynth.core.arguments import shown
from dpppsynth.core.errors import DpppsynthError, InformationWarning, InputError, outside
from dpppsynth.core.output_folder import require_new_folder, require_room, room_held
from dpppsynth.core.progress import Progress, ProgressLike, announced
from dpppsynth.core.randomness import RngLike, generator
from dpppsynth.core.wording import mention
from dpppsynth.spatial.domains import canonical_json

if TYPE_CHECKING:
    from typing import Self

# Bytes, generously: of a certificate, of a released number, of a point and of a number in the draws of a posterior.
CERTIFICATE, NUMBER, POINT, DRAWN = 2**17, 32, 200, 4
# Vertices of a field for each released number, and numbers that are kept of its draws.
VERTICES, KEPT = 8, 5_000_000


class Finishing(Result, Protocol):
    """A result whose inference can still be run."""

    def finish(self, rng: RngLike, say: Progress) -> "Self":
        """The release after inference."""


class Spendable(Planned, Protocol):
    """A plan with known file sizes."""

    @property
    def file_sizes(self) -> tuple[int, int]:
        """Approximate bytes of the paid files, and of the files derived from them."""


F = TypeVar("F", bound=Finishing)


def spend(
    plan: Spendable,
    measure: Callable[[RngLike, str | None], F],
    rng: RngLike,
    *,
    progress: ProgressLike,
    ledger: Account | None,
    entry: str | None,
    subset: Subset,
    keep: str | Path | None,
) -> F:
    """Spend the budget: `measure` is called once the ledger has authorised the release.

    Parameters
    ----------
    plan : ReleasePlan or StratifiedPlan
    measure : callable
        From randomness and the name of the authorisation to a release from which nothing was inferred.
    rng, progress, ledger, entry, subset, keep
        As in `ReleasePlan.release`.
    """
    folder = output_folder(keep, sum(plan.file_sizes))
    room: Any = nullcontext(lambda: None) if folder is None else room_held(folder, plan.file_sizes[0])
    with room as give_back:
        entry = authorise(plan, ledger, entry, rng, subset=subset)
        # One generator for all, so that a seeded run's noise and inference do not share a stream.
        rng = None if rng is None else generator(rng)
        # Strip the ledger token: a release is published.
        with spent_if_refused(ledger, entry):
            release = measure(rng, None if entry is None else str(entry))
        give_back()
        with carried(release):
            release = release if folder is None else release.keep(folder)
    with carried(release):
        record(release, ledger, entry)
        with announced(progress) as say:
            return release.finish(rng, say)


def output_folder(keep: object, size: int) -> Path | None:
    """New folder on a disk with room for `size` bytes; InputError for any other, before anything is spent."""
    if keep is None:
        return None
    if not isinstance(keep, str | Path):
        msg = f"keep: needs the name of a new folder, such as 'public', got {shown(keep)}."
        raise InputError(msg)
    folder = Path(keep)
    require_new_folder(folder)
    require_room(folder, size)
    return folder


@contextmanager
def spent_if_refused(ledger: Account | None, entry: str | None) -> Iterator[None]:
    """Give an authorisation up when values of points are refused: its public numbers were not compared with points."""
    try:
        yield
    except InputError:
        if ledger is not None and entry is not None:
            with suppress(InputError):
                ledger.give_up(entry)
        raise


@contextmanager
def carried(release: object) -> Iterator[None]:
    """Attach the paid release, as `error.release`, to any exception that ends the run, interrupts included."""
    try:
        yield
    except BaseException as error:
        if getattr(error, "release", None) is None:
            error.release = release  # type: ignore[attr-defined]
        raise


def file_sizes(plan: Any) -> tuple[int, int]:
    """Approximate bytes of one plan's paid files, and of the files derived from them."""
    statistic = plan.statistic
    points = POINT * int(statistic.n or statistic.expected_n or 0)
    paid = CERTIFICATE + len(canonical_json(plan.domain.to_geojson())) + NUMBER * statistic.most_numbers
    inferred = getattr(plan.estimator, "has_posterior", False)
    vertices = VERTICES * statistic.most_numbers
    drawn = vertices * min(2000, max(64, KEPT // max(vertices, 1))) if inferred else 0
    return paid + points * statistic.paid_patterns, points + DRAWN * drawn


def authorise(
    plan: Planned,
    ledger: Account | None,
    entry: str | None,
    rng: RngLike,
    *,
    subset: Subset = None,
    taken: bool = True,
) -> str | None:
    """Name of the ledger's authorisation of a plan, valid for this release alone; None without a ledger.

    Parameters
    ----------
    plan : ReleasePlan, StratifiedPlan or Ceiling
    ledger : Ledger, optional
    entry : str, optional
        Of an authorisation that was given before the data were read, for at least what the plan spends.
    rng : None, int or Generator
    subset : dict, optional
        Mark and value of the points, where they are not all points of the domain.
    taken : bool
        False where the plan only stands in for one that will take the authorisation up.

    Raises
    ------
    BudgetError
        When the budget does not suffice.
    InputError
        When the release is seeded, or the ledger cannot account for it.

    Warns
    -----
    InformationWarning
        Before anything is spent, when the ledger does not protect the persons whom the plan does.
    """
    if ledger is None:
        require_no_ledger_needed(entry=entry, subset=subset)
        return None
    if not isinstance(ledger, Account):
        got = type(ledger).__name__
        msg = f"ledger: needs a Ledger, got {got}; open it with Ledger.open('ledger.json')."
        raise InputError(msg)
    if rng is not None:
        msg = (
            "rng: a seeded release is not private, and no ledger can account for it; leave rng= or "
            f"{mention('ledger')} out."
        )
        raise InputError(msg)
    points = points_of(plan, subset)
    if entry is None:
        if (caution := ledger.caution(plan.guarantee)) is not None:
            warnings.warn(caution, InformationWarning, stacklevel=outside())
        return ledger.authorise(plan.guarantee, mechanism=plan.mechanism, domain=plan.domain, **points, taken=taken)
    ledger.settle(entry, plan.guarantee, mechanism=plan.mechanism, domain=plan.domain, **points)
    return entry


def read_sooner(
    plan: Any, read: Callable[[], object], *, ledger: Account | None, entry: str | None, keep: object
) -> None:
    """Read points that an open entry has paid for, before the ledger keeps public numbers of them; none without one."""
    if isinstance(ledger, Account) and entry is not None and ledger.holds(entry):
        output_folder(keep, sum(plan.file_sizes))
        with spent_if_refused(ledger, entry):
            read()


def require_no_ledger_needed(**given: object) -> None:
    """Refuse ledger arguments without a ledger."""
    for name, value in given.items():
        if value is not None:
            msg = f"{name}: it is for a ledger; give the {mention('ledger')} as well, which authorises the release."
            raise InputError(msg)


def record(release: Result, ledger: Account | None, entry: str | None) -> None:
    """Record the measurement of an authorised release in the ledger; on failure the paid files are kept."""
    if ledger is None or entry is None:
        return
    try:
        ledger.record(entry, release.certificate_dict(), domain=release.domain, kept=release.kept)
    except (DpppsynthError, OSError):
        msg = (
            "ledger: the release could not be recorded. It counts as spent, at all that was authorised for it; its "
            "certificate names the entry."
        )
        warnings.warn(msg, InformationWarning, stacklevel=outside())
