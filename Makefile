# make run opens the terminal; make check runs every check, as CI does. Nothing is installed outside .venv.
#
#   CMAKE_ARGS=-DGGML_CUDA=on make run    compiles llama.cpp for a GPU (Metal, Vulkan and native likewise)
#   PYTHON=python3.12 make run            chooses the Python
#   make run ARGS='"Plan a trip" --preset tiny'

VENV ?= $(CURDIR)/.venv
export VENV
BIN := $(VENV)/bin
INSTALL = py=$$(sh scripts/python.sh) && "$$py" scripts/install.py

.DEFAULT_GOAL := help
.PHONY: help run install install-dev test quick check format lint types contracts bench screenshots wheel clean distclean

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

run: install ## install once, then open the terminal
	@$(BIN)/swarmtui $(ARGS)

install: ## .venv with swarmtui and the bundled model
	@$(INSTALL)

install-dev: ## the same and what the tests need
	@$(INSTALL) dev

test: install-dev ## every test
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

bench: install-dev ## figures of speed (minutes)
	@for file in tests/benchmarks/[a-z]*.py; do $(BIN)/python -m tests.benchmarks.$$(basename $$file .py) || exit 1; done

screenshots: install-dev ## screenshots/*.svg
	@$(BIN)/python screenshots/make.py

wheel: install-dev ## dist/*.whl
	@$(BIN)/python -m hatchling build -t wheel

clean: ## caches and builds
	@rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +

distclean: clean ## also .venv (llama.cpp has to be compiled again)
	@rm -rf "$(VENV)"
