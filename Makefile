# Each target installs what it needs into .venv first; later runs find it there.
PYTHON ?= python3
BIN := .venv/bin
# The stamps carry the place: an environment copied along with the tree is made anew.
HERE := $(shell pwd | cksum | cut -d ' ' -f 1)
READY := .venv/ready-$(HERE)
PYTEST := $(BIN)/python -m pytest
PODS := tests/kubernetes --timeout 300

.DEFAULT_GOAL := help
.PHONY: help demo test test-docker test-kubernetes lint types format bench bench-peers bench-http bench-scaling bench-throttling chaos-postgres chaos-redis chaos-bursts chaos-outages reference picture clean

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 20

demo: $(READY) ## watch a small fleet lose a worker and no work
	@$(BIN)/python -m sprat demo

test: export SPRAT_TEST_REQUIRE_SERVERS = 1
test: lint types ## lint, types and every test
	tools/packages redis-server postgresql pgbouncer prometheus chromium
	$(PYTEST) -n auto -m "not alone"
	$(PYTEST) -m alone
	tools/pythons 3.12 3.13

test-docker: $(READY)-dev ## workers as containers, on a Docker engine of our own (as root)
	tools/docker-engine sh -c 'tools/packages postgresql docker-compose && $(PYTEST) --timeout 600 tests/docker'

test-kubernetes: $(READY)-dev ## workers as pods, on a real Kubernetes of our own (as root)
	$(BIN)/python tools/cluster sh -c '$(PYTEST) $(PODS) -n 3 -m "not alone" && $(PYTEST) $(PODS) -m alone'

lint: $(READY)-dev ## style and import order
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .

types: $(READY)-dev ## strict type checking of the package and the examples
	$(BIN)/python -m mypy

format: $(READY)-dev ## rewrite the code in the house style
	$(BIN)/python -m ruff check --fix .
	$(BIN)/python -m ruff format .

chaos-redis: $(READY)-dev ## kill -9 a Redis server ten times in the middle of load
	tools/packages redis-server
	SPRAT_CHAOS_KILLS=10 $(BIN)/python -m pytest -q -s tests/durability/test_redis_kill.py

bench: $(READY)-dev ## every benchmark, against others on this machine
	$(BIN)/python -m bench

bench-peers: $(READY)-dev ## beside other queues on Redis, PostgreSQL and SQLite
	tools/packages redis-server postgresql
	$(BIN)/python -m bench.peers

bench-scaling: $(READY)-dev ## our scaling policy against the rules of others
	$(BIN)/python -m bench.scaling

bench-throttling: $(READY)-dev ## jobs that call a service which answers 429 now and then
	$(BIN)/python -m bench.throttling

chaos-postgres: $(READY)-dev ## kill -9 PostgreSQL ten times in the middle of load
	tools/packages postgresql
	SPRAT_CHAOS_ROUNDS=10 $(BIN)/python -m pytest -q -rP tests/postgres/test_postgres_kill.py

chaos-bursts: $(READY)-dev ## kill -9 whole fleets: SPRAT_CHAOS_BURSTS (200) times per store
	tools/packages redis-server postgresql
	@rm -f build/chaos-bursts.jsonl
	SPRAT_CHAOS_BURSTS=$${SPRAT_CHAOS_BURSTS:-200} SPRAT_CHAOS_REPORT=$(CURDIR)/build/chaos-bursts.jsonl \
		$(PYTEST) -q -n 4 tests/fleet/test_campaign_bursts.py; \
		code=$$?; $(BIN)/python tests/fleet/campaign.py build/chaos-bursts.jsonl; exit $$code

chaos-outages: $(READY)-dev ## take the store away: SPRAT_CHAOS_OUTAGES (50) times per store
	tools/packages redis-server postgresql
	@rm -f build/chaos-outages.jsonl
	SPRAT_CHAOS_OUTAGES=$${SPRAT_CHAOS_OUTAGES:-50} SPRAT_CHAOS_REPORT=$(CURDIR)/build/chaos-outages.jsonl \
		$(PYTEST) -q -n 4 tests/fleet/test_campaign_outages.py; \
		code=$$?; $(BIN)/python tests/fleet/campaign.py build/chaos-outages.jsonl; exit $$code

bench-http: $(READY)-dev ## the server under load, and with a thousand workers that wait
	$(BIN)/python -m bench.http

reference: $(READY)-dev ## write what docs/ take from the code: settings, sprat.yml's schema, layers
	$(BIN)/python tools/settings_reference.py
	$(BIN)/python tools/architecture.py

picture: $(READY)-dev ## draw what the demo shows, for the README
	$(BIN)/python tools/picture.py docs/demo.svg sprat demo


clean: ## remove everything that can be made again
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
	find src tests bench -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): pyproject.toml tools/venv
	@PYTHON="$(PYTHON)" tools/venv .
	@touch $@

$(READY)-dev: pyproject.toml tools/venv
	@PYTHON="$(PYTHON)" tools/venv '.[dev]'
	@touch $(READY) $@
