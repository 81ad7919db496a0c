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
from .answers import BoundedErrorAnswers
from .auditing import Audit, audit
from .domains import Window
from .errors import BudgetError, DpppsynthError, InputError, PrivacyCheckError, QualityError, ReleaseBlocked
from .io import read_network, read_pattern, read_window
from .ledger import Ledger
from .linear_network import LinearNetwork
from .mesh import Mesh
from .patterns import PointPattern
from .privacy import AddRemove, AddRemovePerson, AlphaNeighbours, GeoIndistinguishability, Guarantee, Local, ReplaceOne
from .recommendation import Recommendation, recommend
from .release import (
    BoundedErrorRelease,
    CoxRelease,
    GridRelease,
    HeatmapRelease,
    LocalRelease,
    PointRelease,
    PoissonRelease,
    load_release,
)
from .reporting import write_report
from .synthesizers import (
    BoundedErrorSynthesizer,
    HeatmapSynthesizer,
    KernelSynthesizer,
    LaplaceSynthesizer,
    LGCPSynthesizer,
    PlanarLaplaceSynthesizer,
)

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
