"""The `sprat` command: one module per subcommand.

Imports every lower layer. Start with `main.py`, which finds the subcommand and prints errors.
"""
