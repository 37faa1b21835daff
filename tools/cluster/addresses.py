"""The addresses of a cluster. Its network namespace is its own, so they can be the usual ones."""

from __future__ import annotations

NODE_ADDRESS = "10.88.0.1"  # on the loopback device: a kubelet refuses 127.0.0.1
SERVICES = "10.0.0.0/24"
# The address of the service `kubernetes`, through which pods find the API server. It is an address
# of the loopback device too: that saves the proxy which usually leads there.
API_ADDRESS = "10.0.0.1"
API = f"https://{API_ADDRESS}:443"
