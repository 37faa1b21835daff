"""The tables of routes, one module for each family."""
