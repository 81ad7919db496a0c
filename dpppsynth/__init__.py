"""Differentially private synthesis of spatial point patterns.

A custodian of sensitive points, such as homes of patients or places of crimes, brings a `PointPattern`, a public
`Window` or `LinearNetwork`, and a privacy budget. The bound is checked from public parameters before the data are
touched; then one release spends the budget, and everything drawn from that release is free::

    import dpppsynth as dps

    deaths = dps.datasets.soho_deaths()                   # a PointPattern in a Window
    lgcp = dps.LGCPSynthesizer(epsilon=1.0, alpha=25.0)   # alpha in the unit of the window, here metres
    lgcp.check(deaths.domain, n=len(deaths))              # a Guarantee, from public parameters alone
    lgcp.rehearse(deaths.domain, n=len(deaths))           # what to expect, on surrogate patterns
    release = lgcp.release(deaths)                        # a CoxRelease: spends the budget once
    release.save("public/")                               # synthetic patterns and their certificate

Where to look next:

========================== ==========================================================================================
`Window`                   the public domain; `read_window` reads one from a file
`LinearNetwork`            a public domain made of streets; `read_network` reads one from a file
`PointPattern`             points in a domain; `read_pattern` reads one, `datasets` holds some
`LaplaceSynthesizer`       a private piecewise intensity from discrete Laplace noise
`LGCPSynthesizer`          a log-Gaussian Cox process, from a private statistic or as one private posterior draw
`KernelSynthesizer`        Poisson patterns around the points, every one of them paid for
`BoundedErrorSynthesizer`  private counts of which none is off by more than a bound
`PlanarLaplaceSynthesizer` the points themselves, each moved by noise: geomasking with a proof
`HeatmapSynthesizer`       a private heat map, where a person has many points and all are hidden at once
`MarkedSynthesizer`        points with types and times (`Marks`, `Types`, `Times`) from one private statistic
`PairSums`                 how many points are near each other: a private second-order statistic
`CoxRelease`               a private intensity to draw patterns from; `load_release` goes on from a saved one
`PoissonRelease`           the patterns of the kernel synthesizer
`PointRelease`             the moved points of the planar Laplace synthesizer; a track of them can be filtered
`BoundedErrorRelease`      counts within their bound and the intensity; by months they are a series to filter
`HeatmapRelease`           a distribution over a grid, its heat maps and patterns
`MarkedRelease`            an intensity of places, times and types, and points with their marks
`PairSumsRelease`          its sums by radius, with the noise of each
`local`                    mechanisms whose clients randomise their own reports: nobody is trusted with the points
`LocalRelease`             shares of the cells of a grid, from reports; `GridRelease` answers range queries
`privacy`                  neighbouring relations (`AlphaNeighbours`, `ReplaceOne`, `AddRemove`), bounds, certificates
`heatmaps`                 heat maps as plain arrays: pictures, distances between them, what a private one measures
`randomizers`              laws and estimators of local mechanisms; `grids` has cells and cuts for range queries
`models`                   covariances, planar meshes, the log-Gaussian Cox posterior and its samplers
`linear_network`           meshes of networks, the resistance metric, network K-functions
`BoundedErrorAnswers`      whole numbers counted elsewhere, released with bounded error; `filters` for series
`truncated`                laws of noise with a bound, and what the bound costs
`Ledger`                   the budget of a data set over several releases: `release(pattern, ledger=ledger)`
`audit`                    lower bounds on what a mechanism gives away, by running it; `auditing` holds the parts
`write_report`             a saved release explained in one self-contained page
`recommend`                which mechanism, from public parameters and a simulation study
`evaluation`               K-functions, distances, scores, a confidential report, simulation studies
`io`, `plotting`           reading, writing and drawing patterns and releases
========================== ==========================================================================================

Every error raised on purpose is a `DpppsynthError`; an argument that breaks its rule is refused with an `InputError`,
which is a `ValueError` too. Names load when first used, so importing the package is quick.
"""

import lazy_loader

__getattr__, __dir__, _names = lazy_loader.attach_stub(__name__, __file__)
__all__ = [name for name in _names if name != "__version__"]
