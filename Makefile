PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help

.PHONY: help
help:  ## Print the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if v >= (3, 11) else f"Python 3.11 or newer is needed, {sys.executable} is {v[0]}.{v[1]}: install one and run make PYTHON=/path/to/python3.11")'
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { echo "this Python has no ensurepip: install the venv package of your system (Debian: python3-venv)"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --editable .
	@touch $@

.PHONY: install
install: $(STAMP)  ## Create the virtual environment from the lock

.PHONY: lock
lock:  ## Resolve requirements.lock anew (hashes, no download addresses)
	$(BIN)/uv pip compile pyproject.toml --group dev --output-file requirements.lock --generate-hashes --universal --python-version 3.11 --no-header --no-emit-index-url --no-annotate --quiet
