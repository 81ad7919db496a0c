"""Truncated noise laws, and the delta of their bound."""
