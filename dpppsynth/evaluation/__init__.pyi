from . import experiments
from .distances import misplaced_share, total_variation
from .envelopes import Envelope, envelope
from .kfunction import KFunction, PairCorrelation, default_distances, k_function, pair_correlation
from .scores import mean_integrated_squared_error, propensity_mse
from .smoothing import KernelIntensity, kernel_intensity
from .transport import grid_wasserstein, wasserstein
from .utility_report import UtilityReport, evaluate

__all__ = [
    "Envelope",
    "KFunction",
    "KernelIntensity",
    "PairCorrelation",
    "UtilityReport",
    "default_distances",
    "envelope",
    "evaluate",
    "experiments",
    "grid_wasserstein",
    "k_function",
    "kernel_intensity",
    "mean_integrated_squared_error",
    "misplaced_share",
    "pair_correlation",
    "propensity_mse",
    "total_variation",
    "wasserstein",
]
