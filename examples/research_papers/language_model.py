"""Any server that speaks OpenAI's chat completions, with nothing but the standard library.

It is used if OPENAI_BASE_URL is set, such as https://api.openai.com/v1 or http://localhost:11434/v1.
"""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from typing import Any

import sprat

MODEL = "gpt-4o-mini"  # unless OPENAI_MODEL names another
TIMEOUT_SECONDS = 60.0
LONGEST_PAUSE_SECONDS = 300.0  # a server that asks for more is asked again all the same


class LanguageModel:
    def __init__(self, url: str, name: str, key: str | None) -> None:
        self.name = name
        self._url = url.rstrip("/") + "/chat/completions"
        self._headers = {"Content-Type": "application/json"}
        if key:
            self._headers["Authorization"] = f"Bearer {key}"

    def answer(self, question: str) -> str:
        message = {"role": "user", "content": question}
        body = {"model": self.name, "messages": [message], "temperature": 0}
        said: str = self._post(body)["choices"][0]["message"]["content"]
        return said.strip()

    def _post(self, body: dict[str, Any]) -> Any:
        request = urllib.request.Request(self._url, json.dumps(body).encode(), self._headers)
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise _refusal(error) from error
        except urllib.error.URLError as error:  # nobody there, or not yet
            raise sprat.Transient(f"the model cannot be reached: {error.reason}") from error


def configured() -> LanguageModel | None:
    url = os.environ.get("OPENAI_BASE_URL")
    if not url:
        return None
    name = os.environ.get("OPENAI_MODEL") or MODEL
    return LanguageModel(url, name, os.environ.get("OPENAI_API_KEY"))


def _refusal(error: urllib.error.HTTPError) -> Exception:
    """Being throttled and a broken server pass; a wrong key or question costs an attempt."""
    if error.code == 429 or error.code >= 500:
        pause = _seconds(error.headers.get("Retry-After"))
        return sprat.Transient(f"the model is busy: {error}", delay_seconds=pause)
    return RuntimeError(f"the model refuses: {error}: {error.read(500).decode(errors='replace')}")


def _seconds(text: str | None) -> float | None:
    """None, which leaves the pause to the pool, when there is no number."""
    try:
        return None if text is None else min(max(0.0, float(text)), LONGEST_PAUSE_SECONDS)
    except ValueError:
        return None
