"""Cell counts and numeric queries with a hard bound on every error."""
