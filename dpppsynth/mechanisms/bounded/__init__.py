"""Counts and numeric queries none of whose errors exceeds a bound."""
