"""Everything that compiles for a GPU or runs on one; only this package imports CuPy."""
