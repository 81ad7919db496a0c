"""Points with types and times, in one private statistic."""
