"""The dashboard in a real browser: what it shows, to whom, and what it does with hostile text."""

from __future__ import annotations

import http.client
import os
import shutil
from collections.abc import Iterator
from importlib import resources

import pytest
from houses import Client, House
from playwright.sync_api import Browser, Page, expect, sync_playwright
from servers.orchestrator import OPEN, serving

from sprat.core import model
from sprat.server.routes import dashboard
from sprat.store.memory.backend import MemoryBackend
from sprat.store.store import Store

FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
)
PATIENCE_MS = 30_000
HOSTILE = "<img src=x onerror=\"document.title='taken'\">"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    found = shutil.which("chromium")
    if found is None and not os.environ.get("SPRAT_TEST_REQUIRE_SERVERS"):
        pytest.skip("needs Debian's chromium")
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=found, args=list(FLAGS))
        yield started
        started.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page that fails the test when anything in it goes wrong."""
    opened = browser.new_page(viewport={"width": 1000, "height": 800})
    opened.set_default_timeout(PATIENCE_MS)
    wrong: list[str] = []
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    yield opened
    opened.close()
    assert not wrong


def filled(store: Store) -> None:
    """A pool with something of everything, and hostile text wherever a user can put some."""
    pool = store.pool("papers")
    pool.configure(max_workers=6)
    worker = store.workers.register(
        model.WorkerRegistration(worker_id="w-1", pool_id="papers", host=HOSTILE)
    )
    pool.push_many([{"n": n} for n in range(5)])
    bad = pool.push({"n": 5}, max_retries=1, priority=9)
    first = pool.claim(worker)
    assert first is not None
    assert first.id == bad
    pool.fail(first, f"Traceback\nValueError: {HOSTILE}")
    done = pool.claim(worker)
    assert done is not None
    pool.complete(done, {"ok": True})
    seen = pool.observe()
    decision = model.Decision(
        pool="papers",
        policy="slo",
        direction="up",
        current=1,
        desired=3,
        reason=f"4 waiting {HOSTILE}",
        launch=2,
        max_workers=6,
    )
    assert pool.record(decision, version=seen.version) is not None


def tiles(page: Page) -> dict[str, str]:
    found = page.locator(".tile").all()
    return {one.locator("span").inner_text(): one.locator("b").inner_text() for one in found}


def test_it_shows_every_pool_and_one_of_them_closely(page: Page) -> None:
    store = Store(MemoryBackend())
    filled(store)
    store.pool("calls").push({})
    store.pool("calls").pause()
    with serving(store) as served:
        page.goto(served.url)
        rows = page.locator("tbody tr")
        expect(rows).to_have_count(2)
        expect(rows.nth(0)).to_contain_text("paused")
        assert rows.nth(1).locator("td").all_inner_texts()[:6] == [
            *("papers", "4", "0", "1", "1", "1 (1 idle, 2 starting)"),
        ]
        page.click("text=papers")
        expect(page.locator("figure")).to_have_count(3)
        shown = tiles(page)
        assert (shown["waiting"], shown["done"], shown["poisoned"]) == ("4", "1", "1")
        assert shown["workers, at most 6"] == "1 (1 idle, 2 starting)"
        expect(page.locator("main")).to_contain_text(f"1 → 3slo4 waiting {HOSTILE}")
        expect(page.locator("main")).to_contain_text(f"ValueError: {HOSTILE}")
        expect(page).to_have_title("papers · sprat")


def test_it_follows_what_happens(page: Page) -> None:
    store = Store(MemoryBackend())
    pool = store.pool("papers")
    pool.push({})
    with serving(store) as served:
        page.goto(f"{served.url}/#/pools/papers")
        expect(page.locator(".tile b").first).to_have_text("1")
        pool.push_many([{}] * 41)
        expect(page.locator(".tile b").first).to_have_text("42")


def test_it_asks_for_a_key_and_shows_what_that_key_may_see(page: Page, house: House) -> None:
    house.store.pool("acme.papers").push({})
    house.store.pool("secret").push({})
    page.goto(f"http://127.0.0.1:{house.served.port}/")
    expect(page.locator("#key")).to_be_visible()
    page.fill("#typed", "sprat_wrong")
    page.click("text=look")
    expect(page.locator("#state")).to_contain_text("not valid")
    page.fill("#typed", house.keys["viewer", "acme"])
    page.click("text=look")
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.locator("tbody")).to_contain_text("papers")
    assert "secret" not in page.content()
    assert page.evaluate("localStorage.length") == 0
    page.click("text=forget the key")
    expect(page.locator("#key")).to_be_visible()
    expect(page.locator("tbody")).to_have_count(0)


def test_it_says_when_the_server_is_gone_and_goes_on_when_it_is_back(page: Page) -> None:
    store = Store(MemoryBackend())
    store.pool("papers").push({})
    with serving(store) as served:
        page.goto(served.url)
        expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.locator("#state")).to_have_text("the server does not answer")
    expect(page.locator("tbody tr")).to_have_count(1)
    with serving(store, OPEN.replace(port=served.port)):
        expect(page.locator("#state")).to_contain_text("as of")


# -- the files ----------------------------------------------------------------------------------


def test_every_file_is_served_and_nothing_else(house: House) -> None:
    ask = Client(house.served.port)
    kept = {one.name for one in (resources.files("sprat.server") / "dashboard").iterdir()}
    assert kept == {"page.html", *dashboard.FILES}
    for name in dashboard.FILES:
        answer = ask("GET", f"/dashboard/{name}")
        assert answer.status == 200
        assert "default-src 'none'" in answer.headers["content-security-policy"]
    for name in ("page.html", "..%2f__init__.py", "none.js"):
        assert ask("GET", f"/dashboard/{name}").status == 404


JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (JSON, 200),
        ({**JSON, "Origin": "http://HERE", "Sec-Fetch-Site": "same-origin"}, 200),
        ({**JSON, "Sec-Fetch-Site": "none"}, 200),
        ({**JSON, "Origin": "http://localhost:3000"}, 403),
        ({**JSON, "Origin": "http://127.0.0.1:1"}, 403),
        ({**JSON, "Origin": "http://localhost@example.com"}, 403),
        ({**JSON, "Origin": "https://example.com"}, 403),
        ({**JSON, "Origin": "http://HERE.example.com"}, 403),
        ({**JSON, "Origin": "null"}, 403),
        ({**JSON, "Sec-Fetch-Site": "same-site"}, 403),  # another port of this host
        ({**JSON, "Sec-Fetch-Site": "cross-site"}, 403),
        ({}, 415),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
    ],
)
@pytest.mark.parametrize("path", ["resume", "jobs", "jobs/stream"])
def test_without_keys_pages_from_elsewhere_are_refused(
    path: str, headers: dict[str, str], status: int
) -> None:
    store = Store(MemoryBackend())
    store.pool("papers").resume()
    with serving(store) as served:
        here = f"127.0.0.1:{served.port}"
        sent = {name: value.replace("HERE", here) for name, value in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)
        connection.request("POST", f"/api/v1/pools/papers/{path}", b'{"data": 1}', sent)
        assert connection.getresponse().status == status
        connection.close()
    assert bool(store.pool("papers").counts().pending) == (status == 200 and path != "resume")
