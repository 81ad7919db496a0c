"""`audit`: from anything that makes releases to lower bounds on what they give away."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from dpppsynth.auditing.examine import examine
from dpppsynth.auditing.power import detectable
from dpppsynth.auditing.result import Audit
from dpppsynth.auditing.statistics import named
from dpppsynth.auditing.target import Statistic, Target
from dpppsynth.auditing.targets import target_of, target_of_release
from dpppsynth.auditing.trials import run_trials
from dpppsynth.domains import Domain
from dpppsynth.errors import InputError, PrivacyCheckError
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.profiles import Profile
from dpppsynth.privacy.verify import Verification, verify

# Fewer trials choose events blindly.
FEWEST = 50


def audit(
    target: Any,
    domain: Domain | None = None,
    *,
    n: int | None = None,
    expected_n: float | None = None,
    pair: tuple[Any, Any] | None = None,
    statistics: Iterable[Statistic | Callable[[Any], Any]] = (),
    claimed: Guarantee | Profile | None = None,
    delta: float | None = None,
    trials: int = 5000,
    false_alarm: float = 1e-6,
    workers: int = 1,
    progress: Callable[[str], object] | None = None,
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
        Neighbouring inputs.
    statistics : sequence of Statistic or callable
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

    Returns
    -------
    Audit

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
    _require_sizes(trials, false_alarm, workers)
    profile = claimed.profile if isinstance(claimed, Guarantee) else claimed
    verification: Verification | None = None
    if isinstance(target, str | Path):
        _require_unused("a saved release", domain=domain, n=n, expected_n=expected_n, pair=pair, **options)
        verification = verify(target)
        try:
            subject = target_of_release(target, statistics)
        except (InputError, PrivacyCheckError):
            if verification.holds:
                raise
            return _nothing_run(verification, false_alarm)
    elif isinstance(target, Target) or callable(target):
        _require_unused("a function or Target", domain=domain, n=n, expected_n=expected_n, **options)
        subject = _own(target, pair, profile, statistics)
    else:
        subject = target_of(
            target, domain, n=n, expected_n=expected_n, pair=pair, statistics=tuple(statistics), **options
        )
    if profile is not None:
        subject = replace(subject, claimed=profile)
    return _audit(subject, verification, delta, trials, false_alarm, workers, progress)


def _audit(
    target: Target,
    verification: Verification | None,
    delta: float | None,
    trials: int,
    false_alarm: float,
    workers: int,
    progress: Callable[[str], object] | None,
) -> Audit:
    claimed = target.claimed
    delta = claimed.at if delta is None else delta
    if not 0 <= delta < 1:
        msg = f"delta: must lie in [0, 1), got {delta!r}."
        raise InputError(msg)
    features = run_trials(target, trials, workers=workers, progress=progress)
    lower_bound, findings = examine(target.statistics, features, claimed, delta=delta, false_alarm=false_alarm)
    return Audit(
        lower_bound=lower_bound,
        claimed=claimed.epsilon(delta),
        delta=delta,
        confidence=1 - false_alarm,
        trials=trials,
        detectable=detectable(claimed, trials, false_alarm, delta=delta, statistics=len(target.statistics)),
        findings=findings,
        verification=verification,
        words=target.words,
    )


def _own(
    target: Any,
    pair: tuple[Any, Any] | None,
    claimed: Profile | None,
    statistics: Iterable[Statistic | Callable[[Any], Any]],
) -> Target:
    """Target of one's own making, or around a function of an input."""
    more = named(statistics)
    if isinstance(target, Target):
        return replace(target, statistics=target.statistics + more, pair=target.pair if pair is None else pair)
    missing = [
        name
        for name, absent in (("pair", pair is None), ("claimed", claimed is None), ("statistics", not more))
        if absent
    ]
    if pair is None or claimed is None or missing:
        msg = f"{', '.join(missing)}: needed to audit a function, about which nothing else is known."
        raise InputError(msg)
    return Target(target, pair, claimed, more, words=getattr(target, "__name__", type(target).__name__))


def _nothing_run(verification: Verification, false_alarm: float) -> Audit:
    claim = verification.guarantee
    return Audit(
        lower_bound=0.0,
        claimed=claim.epsilon(),
        delta=claim.profile.at,
        confidence=1 - false_alarm,
        trials=0,
        detectable=float("inf"),
        findings=(),
        verification=verification,
        words="no mechanism follows from the certificate",
    )


def _require_sizes(trials: int, false_alarm: float, workers: int) -> None:
    if not isinstance(trials, int) or trials < FEWEST:
        msg = f"trials: must be a whole number, at least {FEWEST}, got {trials!r}."
        raise InputError(msg)
    if not 0 < false_alarm <= 0.5:
        msg = f"false_alarm: must be positive and at most 0.5, got {false_alarm!r}; 1e-6 is a common choice."
        raise InputError(msg)
    if not isinstance(workers, int) or workers < 1:
        msg = f"workers: must be a whole number, at least 1, got {workers!r}."
        raise InputError(msg)


def _require_unused(what: str, **arguments: Any) -> None:
    used = [name for name, value in arguments.items() if value is not None]
    if used:
        msg = f"{', '.join(used)}: not used to audit {what}; leave out."
        raise InputError(msg)
