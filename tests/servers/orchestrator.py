"""A real server for tests: on a free port of this machine, in a thread of this process."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from sprat.server.options import Options
from sprat.server.serving import bind, server
from sprat.server.state import ServerState
from sprat.store.store import Store

PATIENCE = 30.0
OPEN = Options(port=0, auth=False, reap_seconds=0, linger_seconds=0, shutdown_seconds=2)


class Served:
    """A server that runs. Its socket listens from the start, so nobody has to wait for it."""

    def __init__(self, store: Store, options: Options = OPEN) -> None:
        self._listening = bind(options)
        self.port: int = self._listening.getsockname()[1]
        scheme = "https" if options.certificate else "http"
        self.url = f"{scheme}://127.0.0.1:{self.port}"
        self.server = server(store, options)
        self.state: ServerState = self.server.config.app.state.sprat
        self.thread = threading.Thread(
            target=self.server.run, args=([self._listening],), daemon=True
        )
        self.thread.start()

    def stop(self) -> None:
        """Begin to stop. The server looks only ten times a second whether it should."""
        self.state.leave()
        self.server.should_exit = True

    def join(self) -> None:
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive(), "the server does not stop"


@contextlib.contextmanager
def serving(store: Store, options: Options = OPEN) -> Iterator[Served]:
    """The store, served until the block ends."""
    served = Served(store, options)
    try:
        yield served
    finally:
        served.stop()
        served.join()
