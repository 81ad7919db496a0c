"""Client mechanisms: their laws, reports, counts and estimators."""
