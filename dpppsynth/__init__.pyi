from . import baselines, datasets, evaluation, io, linear_network, models, plotting, privacy, synthesizers
from .domains import Window
from .errors import BudgetError, DpppsynthError, InputError, PrivacyCheckError, QualityError, ReleaseBlocked
from .io import read_network, read_pattern, read_window
from .linear_network import LinearNetwork
from .mesh import Mesh
from .patterns import PointPattern
from .privacy import AddRemove, AlphaNeighbours, Guarantee, ReplaceOne
from .recommendation import Recommendation, recommend
from .release import CoxRelease, PoissonRelease, load_release
from .synthesizers import KernelSynthesizer, LaplaceSynthesizer, LGCPSynthesizer

__version__: str

__all__ = [
    "AddRemove",
    "AlphaNeighbours",
    "BudgetError",
    "CoxRelease",
    "DpppsynthError",
    "Guarantee",
    "InputError",
    "KernelSynthesizer",
    "LGCPSynthesizer",
    "LaplaceSynthesizer",
    "LinearNetwork",
    "Mesh",
    "PointPattern",
    "PoissonRelease",
    "PrivacyCheckError",
    "QualityError",
    "Recommendation",
    "ReleaseBlocked",
    "ReplaceOne",
    "Window",
    "baselines",
    "datasets",
    "evaluation",
    "io",
    "linear_network",
    "load_release",
    "models",
    "plotting",
    "privacy",
    "read_network",
    "read_pattern",
    "read_window",
    "recommend",
    "synthesizers",
]
