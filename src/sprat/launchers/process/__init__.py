"""Workers as processes of this machine, forked from a small server process per pool.

Start with `launcher.py`, then `fork_server.py` (forks workers and waits for them) and
`store_proxy.py` (the one child of the fork server that has the store open) with its requests in
`proxy_requests.py`.
"""
