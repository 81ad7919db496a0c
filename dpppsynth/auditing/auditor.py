"""`audit`: lower bounds on the privacy loss of a synthesizer, a plan or a saved release, by running it."""

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from dpppsynth.auditing.audit_result import Audit
from dpppsynth.auditing.examine import examine
from dpppsynth.auditing.power import MISFIT, Rating
from dpppsynth.auditing.saved import disagreements
from dpppsynth.auditing.targets import seconds_per_trial, target_of, target_of_published, target_of_release
from dpppsynth.auditing.trials import run_trials
from dpppsynth.contract.audits.noise_laws import AsStated
from dpppsynth.contract.audits.statistics import named
from dpppsynth.contract.audits.target import AuditStatistic, Target, require_two
from dpppsynth.core.arguments import COMMON, positive, probability, whole
from dpppsynth.core.errors import InputError, PrivacyCheckError
from dpppsynth.core.progress import duration
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.profiles import Profile
from dpppsynth.release import certificate
from dpppsynth.release.verify import Verification
from dpppsynth.release.verify import verify_opened as verify_open
from dpppsynth.spatial.domains import Domain

# Fewest trials: fewer cannot choose events.
FEWEST = 50
# Shares of the false alarms that are left for mechanisms that seem to have no randomness, or whose noise comes again.
FIXED, REPEATED = 1e-3, 1e-3


def audit(
    target: Any,
    domain: Domain | None = None,
    *,
    n: int | None = None,
    expected_n: float | None = None,
    pair: tuple[Any, Any] | None = None,
    statistics: Iterable[AuditStatistic | Callable[[Any], Any]] = (),
    claimed: Guarantee | Profile | None = None,
    delta: float | None = None,
    trials: int = 5000,
    false_alarm: float = 1e-6,
    workers: int = 1,
    progress: Callable[[str], object] | None = None,
    limit: bool = True,
    **options: Any,
) -> Audit:
    """Run a mechanism on two neighbouring inputs and bound its privacy loss from below.

    Parameters
    ----------
    target : Synthesizer, plan, path, callable or Target
        A synthesizer, with `domain` and `n` or `expected_n` and `options` as in its `plan`; a plan; the path of a saved
        release, whose certificate is verified and whose mechanism is run anew from its public parameters; a function
        of an input, with `pair`, `claimed` and `statistics`.
    domain : Window or LinearNetwork, optional
    n : int, optional
    expected_n : float, optional
    pair : tuple of two, optional
        Neighbouring inputs, made up: what an audit finds is about them, so of real ones nothing of it may be published.
    statistics : sequence of AuditStatistic or callable
        Looked at beside the built-in ones. A callable turns a release into one number.
    claimed : Guarantee or Profile, optional
        Instead of the mechanism's own claim.
    delta : float, optional
        Where epsilon is quoted, below 1; by default where the claim is.
    trials : int
        Runs on each input, at least 50; a fifth of them chooses what to look for.
    false_alarm : float
        Probability that a true claim is refuted, at most.
    workers : int
        Processes. For more than one, `target` must be picklable, and a script needs `if __name__ == "__main__":`.
    progress : callable, optional
        Told in words how far it is.

    Raises
    ------
    InputError
        When an argument is missing or out of range, or the randomness is seeded.

    Examples
    --------
    Randomised response says the truth with probability 3/4, so epsilon is log 3 = 1.0986. Someone claims 0.5:

    >>> import random
    >>> def respond(answer: bool) -> bool:
    ...     return answer if random.SystemRandom().random() < 0.75 else not answer
    >>> from dpppsynth.privacy import PureDP
    >>> found = audit(respond, pair=(False, True), claimed=PureDP(0.5), statistics=[float], trials=2000)
    >>> found.violated, 0.5 < found.lower_bound < 1.0986
    (True, True)
    """
    settings = _settings(trials, false_alarm, workers)
    profile = _profile(claimed)
    more = named(statistics)
    verification: Verification | None = None
    if isinstance(target, str | Path):
        _require_unused("a saved release", domain=domain, n=n, expected_n=expected_n, pair=pair, **options)
        _tell(progress, "verifying the certificate")
        with certificate.published(target, limit=limit) as found:
            verification = verify_open(found)
            try:
                subject = target_of_published(found, more)
            except (InputError, PrivacyCheckError):
                if verification.holds:
                    raise
                return _nothing_run(verification, settings)
    elif isinstance(target, Target) or callable(target):
        _require_unused("a function or Target", domain=domain, n=n, expected_n=expected_n, **options)
        subject = _own(target, pair, profile, more)
    else:
        _tell(progress, "looking for the hardest pair of neighbouring patterns")
        subject = target_of(target, domain, n=n, expected_n=expected_n, pair=pair, statistics=more, **options)
    if profile is not None:
        looked = tuple(replace(each, claimed=None) for each in subject.statistics)
        subject = replace(subject, claimed=profile, statistics=looked, laws=(), excess=(), counted=None)
    return _audit(subject, verification, delta, settings, progress)


class AuditSettings(NamedTuple):
    """Settings of an audit."""

    trials: int
    false_alarm: float
    workers: int


def _audit(
    target: Target,
    verification: Verification | None,
    delta: float | None,
    settings: AuditSettings,
    progress: Callable[[str], object] | None,
) -> Audit:
    claimed, (trials, false_alarm, workers) = target.claimed, settings
    delta = claimed.at if delta is None else probability("delta", delta, zero=True)
    if progress is not None:
        _tell(progress, "timing a run")
        seconds = seconds_per_trial(target) * trials / workers
        _tell(progress, f"{target.words}; {2 * trials} runs will take about {duration(seconds)}")
    differ = (*target.excess, *disagreements(target))
    chances = {"chance": FIXED * false_alarm, "repeat": REPEATED * false_alarm, "misfit": MISFIT * false_alarm}
    runs = run_trials(target, trials, workers=workers, progress=progress, **chances)
    # Trials of one client have no laws to share the chance with.
    misfits = runs.misfits if target.counted is None else target.counted.misfits(chances["misfit"])
    lower_bound, findings = examine(
        target.statistics,
        runs.features,
        claimed,
        delta=delta,
        false_alarm=(1 - FIXED - REPEATED - MISFIT) * false_alarm,
    )
    return Audit(
        lower_bound=lower_bound,
        claimed=claimed.epsilon(delta),
        delta=delta,
        confidence=1 - false_alarm,
        trials=trials,
        findings=findings,
        rating=rating_of(target, delta, trials, false_alarm),
        alike=target.alike,
        fixed=runs.fixed,
        repeats=runs.repeats,
        misfits=misfits,
        disagreements=differ,
        verification=verification,
        words=target.words,
    )


class Required(NamedTuple):
    """Numbers of runs that an audit takes to find faults.

    Attributes
    ----------
    factor : float
        Of too little noise: in all numbers, or as an epsilon too large.
    trials : float
        Runs on each input that find it with probability 0.9; infinite where a million do not. Where the law of the
        likelihood ratio is not known, fewer find no such fault, and it may take more.
    by_ratio : float
        Runs by the likelihood ratio alone, whatever is known of the noise in other numbers.
    seconds : float
        That `trials` take, estimated.
    words : str
        Name of the audited mechanism.
    """

    factor: float
    trials: float
    by_ratio: float
    seconds: float
    words: str

    def to_dict(self) -> dict[str, Any]:
        """JSON form; None stands for infinity."""
        return {name: None if value == math.inf else value for name, value in self._asdict().items()}

    def __str__(self) -> str:
        if not math.isfinite(self.trials):
            return f"{self.words}: a million runs do not find {self.factor:g} times too little noise."
        ratio = f"about {self.by_ratio:.2g}" if math.isfinite(self.by_ratio) else "more than a million"
        return (
            f"{self.words}: {round(self.trials)} runs on each input (--trials {round(self.trials)}) find "
            f"{self.factor:g} times too little noise with probability 0.9, in about {duration(self.seconds)}; by the "
            f"likelihood ratio alone it takes {ratio}."
        )


def required(
    target: Any,
    domain: Domain | None = None,
    *,
    factor: float,
    false_alarm: float = 1e-6,
    workers: int = 1,
    limit: bool = True,
    **options: Any,
) -> Required:
    """Number of runs that an audit takes to find a factor of too little noise, and their time, measured on a few.

    Parameters
    ----------
    target, domain
        As in `audit`; a path is that of a saved release whose certificate holds.
    factor : float
        Above 1.
    false_alarm, workers, limit
        As in `audit`.
    **options
        Further arguments of `audit`: `n`, `expected_n`, `pair`, `statistics`, and those of the synthesizer's `plan`.

    Examples
    --------
    >>> from dpppsynth import LaplaceSynthesizer, Window
    >>> half = required(LaplaceSynthesizer(1.0, alpha=25.0), Window.rectangle(0, 0, 500, 500), n=40, factor=2.0)
    >>> half.trials < 200 < half.by_ratio < 2000
    True
    """
    factor = positive("factor", factor)
    if not factor > 1:
        msg = f"factor: must be above 1, such as 1.2 for noise that is a sixth too small, got {factor!r}."
        raise InputError(msg)
    settings = _settings(FEWEST, false_alarm, workers)
    if isinstance(target, Target):
        subject = target
    elif isinstance(target, str | Path):
        subject = target_of_release(target, named(options.pop("statistics", ())), limit=limit)
    else:
        subject = target_of(target, domain, **options)
    rating = rating_of(subject, subject.claimed.at, settings.trials, settings.false_alarm)
    by_ratio = math.inf if subject.alike else rating.trials_for(factor)
    trials = min(by_ratio, rating.noise_trials_for(factor))
    seconds = seconds_per_trial(subject) * trials / settings.workers if math.isfinite(trials) else math.inf
    return Required(factor, trials, by_ratio, seconds, subject.words)


def rating_of(target: Target, delta: float, trials: int, false_alarm: float) -> Rating:
    """Rating used to simulate the power of an audit of a target."""
    return Rating(target.claimed, delta, trials, false_alarm, len(target.statistics), target.weakened, target.laws)


def _tell(progress: Callable[[str], object] | None, step: str) -> None:
    if progress is not None:
        progress(step)


def _profile(claimed: Any) -> Profile | None:
    profile = claimed.profile if isinstance(claimed, Guarantee) else claimed
    if profile is None or isinstance(profile, Profile):
        return profile
    msg = f"claimed: needs a Guarantee or a profile such as PureDP(1.0), got {type(claimed).__name__}."
    raise InputError(msg)


def _own(
    target: Any,
    pair: tuple[Any, Any] | None,
    claimed: Profile | None,
    more: tuple[AuditStatistic, ...],
) -> Target:
    """Target of one's own making, or around a function of an input."""
    if pair is not None:
        require_two(pair)
    if isinstance(target, Target):
        subject = replace(target, statistics=(*target.statistics, *more))
        if pair is None:
            return subject
        # The known law is that of the target's own pair.
        claim = subject.claimed.claim if isinstance(subject.claimed, AsStated) else subject.claimed
        looked = tuple(replace(each, claimed=None) for each in subject.statistics)
        law: dict[str, Any] = {"weakened": None, "draws": (), "laws": (), "excess": ()}
        return replace(subject, pair=pair, claimed=claim, statistics=looked, alike=False, **law)
    missing = [
        name
        for name, absent in (("pair", pair is None), ("claimed", claimed is None), ("statistics", not more))
        if absent
    ]
    if pair is None or claimed is None or missing:
        msg = f"{', '.join(missing)}: needed to audit a function, about which nothing else is known."
        raise InputError(msg)
    return Target(target, pair, claimed, more, words=getattr(target, "__name__", type(target).__name__))


def _nothing_run(verification: Verification, settings: AuditSettings) -> Audit:
    claim = verification.guarantee
    return Audit(
        lower_bound=0.0,
        claimed=claim.epsilon(),
        delta=claim.profile.at,
        confidence=1 - settings.false_alarm,
        trials=0,
        findings=(),
        verification=verification,
        words="no mechanism follows from the certificate",
    )


def _settings(trials: Any, false_alarm: Any, workers: Any) -> AuditSettings:
    alarm = probability("false_alarm", false_alarm)
    if alarm > 0.5:
        msg = f"false_alarm: must be at most 0.5, got {alarm!r}; {COMMON}."
        raise InputError(msg)
    return AuditSettings(whole("trials", trials, FEWEST), alarm, whole("workers", workers, 1))


def _require_unused(what: str, **arguments: Any) -> None:
    used = [name for name, value in arguments.items() if value is not None]
    if used:
        msg = f"{', '.join(used)}: not used to audit {what}; leave out."
        raise InputError(msg)
