"""Workers as containers of a Docker engine. Start with `launcher.py`. Needs the Docker SDK."""
