"""Log-Gaussian Cox synthesizers: from a private statistic, or as one posterior draw."""
