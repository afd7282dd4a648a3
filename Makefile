# Every target does its own set-up: the virtual environment from the lock, the jars from their
# manifest. `make` alone prints the list.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
UNMARKED := not spark and not integration and not e2e and not soak and not stack
# Four on two cores: tests of real servers wait at times. tests/scopes.py says what stays together.
WORKERS := -n 4 --dist loadscope --no-loadscope-reorder
NEEDS_PYTHON := Python 3.11 or newer is needed: install one, or run make PYTHON=/path/to/python3.11
NEEDS_JAVA := Java 17 or 21 is needed: install one (Debian: openjdk-17-jre-headless), or set JAVA_HOME

# Where compiled modules are not kept, each command and each process of a test compiles anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help

.PHONY: help
help:  ## Print the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

$(STAMP): requirements.lock pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "$(NEEDS_PYTHON)" >&2; exit 3; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "$(NEEDS_PYTHON)" >&2; exit 3; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { echo "this Python has no ensurepip: install the venv package of your system (Debian: python3-venv)" >&2; exit 3; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --editable .
	@touch $@

.PHONY: install
install: $(STAMP)  ## Create the virtual environment from the lock

.PHONY: java
java:
	@if [ -n "$$JAVA_HOME" ]; then test -x "$$JAVA_HOME/bin/java"; else command -v java >/dev/null; fi || { echo "$(NEEDS_JAVA)" >&2; exit 3; }

.PHONY: jars
jars: $(STAMP) java  ## Resolve every jar into the cache (once; nothing is fetched after it)
	@$(BIN)/python -m cdc.stack.artifacts

.PHONY: classes
classes: jars
	@$(BIN)/python -m tests.class_archive

.PHONY: collected
collected: $(STAMP)
	@# Compiles all tests once: each worker would do it for itself. What is wrong the run says too.
	@$(BIN)/pytest --collect-only -qq >/dev/null 2>&1 || true

.PHONY: prepared
prepared: jars
	@$(MAKE) --no-print-directory -j 2 classes types collected lint

.PHONY: lock
lock: $(STAMP)  ## Resolve the locks anew, for work here and for images (hashes, no download addresses)
	$(BIN)/uv pip compile pyproject.toml --group dev --output-file requirements.lock --generate-hashes --universal --python-version 3.11 --no-header --no-emit-index-url --no-annotate --quiet
	$(BIN)/uv pip compile pyproject.toml --constraint requirements.lock --output-file requirements-run.lock --generate-hashes --universal --python-version 3.11 --no-header --no-emit-index-url --no-annotate --quiet

.PHONY: fmt
fmt: $(STAMP)  ## Format, and fix what can be fixed by itself
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

.PHONY: lint
lint: $(STAMP)  ## ruff, every rule, and the format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

.PHONY: types
types: $(STAMP)  ## mypy --strict
	$(BIN)/mypy

.PHONY: unit
unit: $(STAMP)  ## Unit and property tests: no JVM, no server
	$(BIN)/pytest -q -n 3 -m "$(UNMARKED)"

.PHONY: docs-check
docs-check: $(STAMP)  ## Links, commands, options, keys and files that the documents name exist
	$(BIN)/pytest -q tests/test_docs.py

.PHONY: pictures
pictures: $(STAMP)  ## Draw the README's picture from docs/pictures/terminal.txt
	$(BIN)/python docs/pictures/draw.py

.PHONY: check
check: lint types unit  ## What runs before every commit, under two minutes

.PHONY: test
test: prepared  ## Everything but soak: real servers, real Spark
	$(BIN)/pytest $(WORKERS) -m "not soak and not stack"

.PHONY: test-deep
test-deep: prepared  ## The same with many more examples, rows and random tables: hours
	$(BIN)/pytest $(WORKERS) --deep -m "not soak and not stack"

.PHONY: test-stack
test-stack: jars  ## The container stack: up, crashes, stops, lost volumes, in an engine; or ONLY=a_up MINUTES=15
	$(BIN)/python -m tools.stack test $(addprefix --only ,$(ONLY)) $(addprefix --minutes ,$(MINUTES))

.PHONY: test-faults
test-faults: jars  ## Every check under every fault, hours; or some of it: MINUTES=60 KILLS=200 SEED=7 MERGE=1
	$(BIN)/pytest tests/faults --deep -s $(if $(MERGE),--merge-alone) $(addprefix --budget ,$(MINUTES)) $(addprefix --kills ,$(KILLS)) $(addprefix --seed ,$(SEED))

.PHONY: soak
soak: jars  ## Faults and operations at random: MINUTES=30 SEED=7; with SQL="schema.sql data.sql" any database changed
	$(BIN)/pytest tests/soak/$(if $(SQL),test_unfamiliar_schema.py,test_faults_walk.py) -m soak -s $(addprefix --sql ,$(SQL)) --minutes $(or $(MINUTES),5) $(addprefix --seed ,$(SEED))

.PHONY: test-schemas
test-schemas: jars  ## Random schemas: DATABASES=10 SEED=1
	$(BIN)/pytest tests/schemas --deep -s --databases $(or $(DATABASES),1) $(addprefix --seed ,$(SEED))

.PHONY: test-mutants
test-mutants: jars  ## Take rules out and plant bugs, one at a time, and list the tests that notice
	$(BIN)/python -m tests.mutants

.PHONY: demo
demo: jars  ## A shop database, live changes, the lake beside it, verified
	$(BIN)/python -m cdc.demo

.PHONY: bench
bench: jars  ## Measure ours and what it is compared with, under 30 minutes; or QUICK=1, or ONLY=apply,reads
	$(BIN)/python -m bench $(if $(QUICK),--quick) $(addprefix --only ,$(ONLY)) $(addprefix --seed ,$(SEED))

.PHONY: bench-memory
bench-memory: jars  ## Measure the job's memory under load, for an hour; or MINUTES=10
	$(BIN)/python -m bench --memory $(or $(MINUTES),60) $(addprefix --seed ,$(SEED))

.PHONY: bench-peers
bench-peers: jars  ## Measure beside Flink CDC and Paimon, three times in turn; or QUICK=1
	$(BIN)/python -m bench --peers $(if $(QUICK),--quick) $(addprefix --seed ,$(SEED))

.PHONY: up
up: jars  ## Start what wal2lake.yaml describes and return when it applies
	$(BIN)/wal2lake up --detach

.PHONY: down
down: $(STAMP)  ## Stop it
	$(BIN)/wal2lake down

.PHONY: stack-up
stack-up: jars  ## Start the container stack; make what cannot be pulled; PROFILE=observe,s3 adds Prometheus and Grafana, an object store
	$(if $(PROFILE),COMPOSE_PROFILES=$(PROFILE)) $(BIN)/python -m tools.stack up

.PHONY: stack-down
stack-down: $(STAMP)  ## Stop it; its volumes stay
	$(BIN)/python -m tools.stack down

.PHONY: sbom
sbom: $(STAMP)  ## Write what is in our images to .wal2lake/sbom (CycloneDX); needs Go to build Syft
	$(BIN)/python -m tools.stack sbom

.PHONY: clean
clean:  ## Remove the demo, the tools' caches and the virtual environment (not .wal2lake's other content)
	@if [ -x $(BIN)/python ] && [ -d .wal2lake/demo ]; then $(BIN)/python -m cdc.demo --clean; fi
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis dist *.egg-info spark-warehouse metastore_db derby.log
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
