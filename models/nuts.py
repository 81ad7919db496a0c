"""NUTS, and the density of a field with its gradient in NumPy, which nutpie runs."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from dpppsynth.core.arguments import one_of
from dpppsynth.core.errors import InputError
from dpppsynth.models import likelihood as formulas
from dpppsynth.models.likelihood import MassLikelihood
from dpppsynth.spatial.mesh import Floats

if TYPE_CHECKING:
    import pymc as pm


class Density:
    """Base of log-densities, up to a constant, of coordinates z that are standard normal, or nearly so."""

    @property
    def size(self) -> int:
        """Number of unknowns."""
        raise NotImplementedError

    def function(self) -> Callable[[Floats], tuple[float, Floats]]:
        """A function of z (r,) that gives the value and the gradient (r,)."""
        raise NotImplementedError


class DensityAboutMode(Density):
    """Base of densities whose mode is at z = 0; values are compared with its own."""

    def function(self) -> Callable[[Floats], tuple[float, Floats]]:
        code = self.absolute()
        highest = code(np.zeros(self.size))[0]

        def compared(z: Floats) -> tuple[float, Floats]:
            value, gradient = code(z)
            return value - highest, gradient

        return compared

    def absolute(self) -> Callable[[Floats], tuple[float, Floats]]:
        """As `function`, without a comparison."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class FieldDensity(Density):
    """Log-density of z, up to a constant: `z ~ N(0, I)` and the likelihood of the field `centre + basis z`.

    The posterior of `dpppsynth.models.build_noise_aware`.

    Attributes
    ----------
    likelihood : NoisyMasses or NoisyField
    basis : (V, r) array
        Factor of the prior covariance.
    centre : float
        Prior mean of the field.
    """

    likelihood: MassLikelihood
    basis: Floats
    centre: float = 0.0

    @property
    def size(self) -> int:
        return self.basis.shape[1]

    def function(self) -> Callable[[Floats], tuple[float, Floats]]:
        observed, measure, response, n, shift = self.likelihood.arguments
        # The one form of arrays that code is compiled for.
        given = (self.basis, observed, measure, response)
        basis, *rest = (np.ascontiguousarray(each, dtype=np.float64) for each in given)
        code = _compiled(self.likelihood.law.__name__)
        return partial(code, basis, float(self.centre), *rest, float(n), float(shift))


@cache
def _compiled(law: str) -> Callable[..., Any]:
    """The formula of `likelihood.py` for one law; kept beside that file, or where Numba keeps code of a user."""
    from dpppsynth.core.workers import compiled

    _register()
    return compiled(formulas.LOG_POSTERIORS[law])


@cache
def _register() -> None:
    """Let compiled functions call the others by their names."""
    from numba.extending import register_jitable

    named = formulas.shifted_poisson, formulas.standard_normal, formulas.mass_log_density, formulas.log_posterior
    for function in named:
        register_jitable(function)


CHAINS = 4
# Implementations of NUTS, the faster one first; the other is PyMC's own.
ENGINES = "nutpie", "pymc"


@dataclass(frozen=True)
class Diagnostics:
    """Convergence diagnostics of the chains.

    Attributes
    ----------
    rhat : float
        Largest R-hat over the monitored quantities.
    ess : float
        Smallest effective sample size, bulk or tail.
    divergences : int
    """

    rhat: float
    ess: float
    divergences: int

    RHAT_LIMIT = 1.01
    ESS_LIMIT = 400

    def complaint(self) -> str | None:
        """Text on failed diagnostics, with the figure; None when all pass."""
        if self.divergences:
            return f"{self.divergences} divergent transitions (none allowed)"
        if not self.rhat <= self.RHAT_LIMIT:
            return f"R-hat {self.rhat:.3f} (at most {self.RHAT_LIMIT})"
        if not self.ess >= self.ESS_LIMIT:
            return f"effective sample size {self.ess:.0f} (at least {self.ESS_LIMIT})"
        return None


@dataclass(frozen=True, eq=False)
class Chains:
    """Draws of z, (chains, draws, r), and the number of divergent transitions."""

    z: Floats
    divergences: int


class Sampler:
    """NUTS for one log-density or model.

    Parameters
    ----------
    model : Density or pymc.Model
        The former is for nutpie; the latter has a vector variable `z`.
    engine : {"nutpie", "pymc"}
        nutpie is faster; "pymc" is PyMC's own sampler.
    target_accept : float
        Larger means shorter steps, for posteriors that are harder to follow.
    """

    def __init__(self, model: "Density | pm.Model", engine: str = "nutpie", target_accept: float = 0.8) -> None:
        one_of("engine", engine, ENGINES)
        self._model: Any = model
        self._engine, self._accept = engine, target_accept
        if engine == "nutpie":
            with quiet():
                self._compiled = _for_nutpie(model)
        elif isinstance(model, Density):
            msg = (
                "model: PyMC's own sampler needs a PyMC model, such as `build_noise_aware` makes; take engine 'nutpie'."
            )
            raise InputError(msg)

    def sample(self, *, draws: int, tune: int, seed: int) -> Chains:
        """Run four chains.

        Parameters
        ----------
        draws, tune : int
            Draws kept and discarded, per chain.
        seed : int
            Post-processing may be seeded freely; draw it from `randomness.generator`.
        """
        with quiet():
            trace = (self._nutpie if self._engine == "nutpie" else self._pymc)(draws, tune, seed)
        z, diverging = np.asarray(trace["posterior"]["z"]), trace["sample_stats"]["diverging"]
        if z.shape[:2] != (CHAINS, draws):
            # PyMC returns what it has where the last chain is interrupted.
            raise KeyboardInterrupt
        return Chains(z, int(np.asarray(diverging).sum()))

    def _nutpie(self, draws: int, tune: int, seed: int) -> Any:
        import nutpie

        # Waited for here: nutpie itself would take an interrupt for the end of a whole run.
        running: Any = nutpie.sample(
            self._compiled,
            draws=draws,
            tune=tune,
            chains=CHAINS,
            seed=seed,
            target_accept=self._accept,
            progress_bar=False,
            save_warmup=False,
            blocking=False,
        )
        try:
            return running.wait()
        except BaseException:
            running.cancel()
            raise

    def _pymc(self, draws: int, tune: int, seed: int) -> Any:
        import pymc as pm

        done = count()

        def require_whole(*, draw: Any, **_: Any) -> None:
            # PyMC takes an interrupt for the end of one chain, and goes on to the next.
            if next(done) < draw.chain * (tune + draws):
                raise InterruptedError

        try:
            return pm.sample(
                draws,
                tune=tune,
                chains=CHAINS,
                cores=1,
                random_seed=seed,
                target_accept=self._accept,
                progressbar=False,
                compute_convergence_checks=False,
                callback=require_whole,
                model=self._model,
            )
        except InterruptedError:
            raise KeyboardInterrupt from None


def _for_nutpie(model: "Density | pm.Model") -> Any:
    """The model in nutpie's form."""
    import nutpie

    if not isinstance(model, Density):
        return nutpie.compile_pymc_model(model)
    from nutpie.compiled_pyfunc import from_pyfunc

    # {"z": z} for every z
    named, function = partial(dict.fromkeys, ("z",)), model.function()
    kinds = [np.dtype(np.float64)], [(model.size,)], ["z"]
    return from_pyfunc(
        model.size, lambda: function, lambda *_: named, *kinds, make_initial_point_fn=partial(_standard, model.size)
    )


def _standard(size: int, seed: int) -> Floats:
    """Start of a chain: z (r,) that are standard normal, as the posterior nearly is."""
    return np.random.default_rng(seed).standard_normal(size)


def diagnose(values: Floats, divergences: int) -> Diagnostics:
    """Diagnostics of monitored quantities (chains, draws, q)."""
    with quiet():
        import arviz as az
        import xarray as xr

        data = xr.Dataset({"q": (("chain", "draw", "quantity"), values)})
        rhat = az.rhat(data)
        ess = [az.ess(data, method=method) for method in ("bulk", "tail")]
    worst = np.max(np.asarray(rhat["q"]))
    return Diagnostics(float(worst), float(min(np.min(np.asarray(e["q"])) for e in ess)), divergences)


@contextmanager
def quiet() -> Iterator[None]:
    """Silence the samplers' own warnings and log lines: the diagnostics here replace them."""
    import logging

    loggers = [logging.getLogger(name) for name in ("pymc", "pytensor", "nutpie")]
    levels = [logger.level for logger in loggers]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for logger in loggers:
            logger.setLevel(logging.CRITICAL)
        try:
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)
