"""Workers as pods of a Kubernetes cluster: single pods, Jobs, or those of a Deployment.

Start with `launcher.py`. Needs lightkube.
"""
