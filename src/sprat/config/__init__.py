"""sprat.yml, environment variables and flags, turned into checked settings.

Imports `core`. Start with `settings.py` (a pool's settings) and `project_file.py` (sprat.yml).
"""
