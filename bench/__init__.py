"""Benchmarks: `python -m bench` runs all of them and rewrites docs/benchmarks.md."""
