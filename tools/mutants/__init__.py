"""Takes each guard of `hooks/` away in turn: `make mutants`."""
