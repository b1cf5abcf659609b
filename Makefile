# make run opens the terminal; make check runs every check, as CI does. Nothing is installed outside .venv (and node_modules).
#
#   CMAKE_ARGS=-DGGML_CUDA=on make run    compiles llama.cpp for a GPU (Metal, Vulkan and native likewise)
#   PYTHON=python3.12 make run            chooses the Python
#   make run ARGS='"Plan a trip" --preset tiny'

VENV ?= $(CURDIR)/.venv
export VENV
BIN := $(VENV)/bin
NODE_MODULES := tests/interop/node_modules/.package-lock.json
# Not engine_record, which makes what engine reads.
BENCHMARKS := fold network cost simulation_cost engine quality
INSTALL = py=$$(sh scripts/python.sh) && "$$py" scripts/install.py

.DEFAULT_GOAL := help
.PHONY: help run install install-dev interop test quick check format lint types contracts bench screenshots wheel clean distclean

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

run: install ## install once, then open the terminal
	@$(BIN)/swarmtui $(ARGS)

install: ## .venv with swarmtui and the bundled model
	@$(INSTALL)

install-dev: ## the same and what the tests need
	@$(INSTALL) dev

interop: ## what the JavaScript observer needs: Node 18 or later, npm (its tests tell if something is missing)
	@if command -v npm >/dev/null; then $(MAKE) -s $(NODE_MODULES) || true; fi

$(NODE_MODULES): tests/interop/package.json tests/interop/package-lock.json
	@cd tests/interop && npm ci --loglevel=error </dev/null && touch node_modules/.package-lock.json

test: install-dev interop ## every test
	@echo "== tests"
	@$(BIN)/python -m pytest $(ARGS)

quick: install-dev ## the tests that need no model, process or socket
	@$(BIN)/python -m pytest -m "not model and not real" $(ARGS)

check: install-dev lint types contracts test ## format, lint, types, import contracts, tests

format: install-dev ## rewrite the code in the house's format
	@$(BIN)/ruff format . && $(BIN)/ruff check --fix .

lint: install-dev
	@echo "== format and lint"
	@$(BIN)/ruff format --check . && $(BIN)/ruff check .

types: install-dev
	@echo "== types"
	@$(BIN)/mypy

contracts: install-dev
	@echo "== import contracts"
	@$(BIN)/lint-imports

bench: install-dev ## figures of speed and quality, beside their targets where there are any (half an hour and more)
	@failed=0; for name in $(BENCHMARKS); do \
		echo "== $$name"; $(BIN)/python -m tests.benchmarks.$$name || failed=1; \
	done; exit $$failed

screenshots: install-dev ## screenshots/*.svg
	@$(BIN)/python screenshots/make.py

wheel: install-dev ## dist/*.whl
	@$(BIN)/python -m hatchling build -t wheel

clean: ## caches and builds
	@rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +

distclean: clean ## also .venv and node_modules (llama.cpp has to be compiled again)
	@rm -rf "$(VENV)" tests/interop/node_modules
