from . import (
    auditing,
    baselines,
    datasets,
    evaluation,
    filters,
    grids,
    heatmaps,
    io,
    ledger,
    linear_network,
    local,
    models,
    plotting,
    privacy,
    randomizers,
    reporting,
    synthesizers,
    truncated,
)
from .auditing import Audit, audit
from .core.errors import BudgetError, DpppsynthError, InputError, PrivacyCheckError, QualityError, ReleaseBlocked
from .evaluation.recommendation import Recommendation, recommend
from .io import read_network, read_pattern, read_window
from .ledger import Ledger
from .linear_network import LinearNetwork
from .mechanisms.bounded.numeric_queries import BoundedErrorAnswers
from .mechanisms.bounded.release import BoundedErrorRelease
from .mechanisms.bounded.synthesizer import BoundedErrorSynthesizer
from .mechanisms.heatmap.release import HeatmapRelease
from .mechanisms.heatmap.synthesizer import HeatmapSynthesizer
from .mechanisms.kernel.release import PoissonRelease
from .mechanisms.kernel.synthesizer import KernelSynthesizer
from .mechanisms.laplace.synthesizer import LaplaceSynthesizer
from .mechanisms.lgcp.synthesizer import LGCPSynthesizer
from .mechanisms.local.release import GridRelease, LocalRelease
from .mechanisms.planar_laplace.release import PointRelease
from .mechanisms.planar_laplace.synthesizer import PlanarLaplaceSynthesizer
from .privacy import AddRemove, AddRemovePerson, AlphaNeighbours, GeoIndistinguishability, Guarantee, Local, ReplaceOne
from .release import CoxRelease, load_release
from .reporting import write_report
from .spatial.domains import Window
from .spatial.mesh import Mesh
from .spatial.patterns import PointPattern

__version__: str

__all__ = [
    "AddRemove",
    "AddRemovePerson",
    "AlphaNeighbours",
    "Audit",
    "BoundedErrorAnswers",
    "BoundedErrorRelease",
    "BoundedErrorSynthesizer",
    "BudgetError",
    "CoxRelease",
    "DpppsynthError",
    "GeoIndistinguishability",
    "GridRelease",
    "Guarantee",
    "HeatmapRelease",
    "HeatmapSynthesizer",
    "InputError",
    "KernelSynthesizer",
    "LGCPSynthesizer",
    "LaplaceSynthesizer",
    "Ledger",
    "LinearNetwork",
    "Local",
    "LocalRelease",
    "Mesh",
    "PlanarLaplaceSynthesizer",
    "PointPattern",
    "PointRelease",
    "PoissonRelease",
    "PrivacyCheckError",
    "QualityError",
    "Recommendation",
    "ReleaseBlocked",
    "ReplaceOne",
    "Window",
    "audit",
    "auditing",
    "baselines",
    "datasets",
    "evaluation",
    "filters",
    "grids",
    "heatmaps",
    "io",
    "ledger",
    "linear_network",
    "load_release",
    "local",
    "models",
    "plotting",
    "privacy",
    "randomizers",
    "read_network",
    "read_pattern",
    "read_window",
    "recommend",
    "reporting",
    "synthesizers",
    "truncated",
    "write_report",
]
