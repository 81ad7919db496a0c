"""Private heat maps of persons who may have many points each."""
