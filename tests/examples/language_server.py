"""A small server that speaks OpenAI's chat completions, and refuses as often as it is told to."""

from __future__ import annotations

import json
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class LanguageServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, *, refusals: int = 0, key: str = "secret") -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.refusals = refusals  # of each question, before it is answered
        self.key = key
        self.asked: Counter[str] = Counter()
        self.models: set[str] = set()
        self.may_answer = threading.Event()
        self.may_answer.set()
        self._counting = threading.Lock()
        self._thread = threading.Thread(target=self.serve_forever, args=(0.05,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def count(self, question: str) -> int:
        with self._counting:
            self.asked[question] += 1
            return self.asked[question]

    def __enter__(self) -> LanguageServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.may_answer.set()
        self.shutdown()
        self._thread.join()
        self.server_close()


class Handler(BaseHTTPRequestHandler):
    server: LanguageServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        question = body["messages"][-1]["content"]
        self.server.models.add(body["model"])
        asked = self.server.count(question)
        if self.path != "/v1/chat/completions":
            self._answer(404, {})
        elif self.headers["Authorization"] != f"Bearer {self.server.key}":
            self._answer(401, {"error": {"message": "no such key"}})
        elif asked <= self.server.refusals:
            self._answer(429, {"error": {"message": "slow down"}}, {"Retry-After": "0.1"})
        else:
            self.server.may_answer.wait(90)
            title = question.split("\n")[2]
            message = {"role": "assistant", "content": f"It is about {title}. "}
            self._answer(200, {"choices": [{"index": 0, "message": message}]})

    def _answer(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        text = json.dumps(body).encode()
        try:
            self.send_response(status)
            for name, value in {**(headers or {}), "Content-Length": str(len(text))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(text)
        except ConnectionError:
            pass  # whoever asked was killed meanwhile

    def log_message(self, *_: object) -> None:
        pass
