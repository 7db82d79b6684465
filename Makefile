# Everything a contributor runs. `make` alone lists the targets.
# Another interpreter: make PYTHON=python3.12 venv

SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.stamp
DEMO := $(VENV)/.stamp-demo
WORKERS ?= 2

OLDEST := .venv-oldest
FILES ?= 100000
SEED ?= 1
TESTS ?= tests

.PHONY: help venv demo docs figures remeasure lint format test test-long test-oldest fuzz bench clean

help:  ## list the targets
	@sed -n 's/^\([a-z][a-z-]*\):[^#]*## \(.*\)$$/  \1\t\2/p' Makefile

venv: $(STAMP)  ## create .venv with the pinned versions

# The stamp goes first and comes back last, so a failed or interrupted install is never taken for a finished one.
$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "reprl needs Python 3.11 or newer; $(PYTHON) is missing or older. Try: make PYTHON=python3.12 venv" >&2; exit 1; }
	@rm -f $(STAMP)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev,gym,logs]' -c constraints.txt
	@touch $(STAMP)

# The demo needs the package alone, not the developers' tools; a full .venv serves as well. Python compiles what it imports when it does:
# pip would compile ten times as much, for longer than the demo takes.
$(DEMO): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "reprl needs Python 3.11 or newer; $(PYTHON) is missing or older. Try: make PYTHON=python3.12 demo" >&2; exit 1; }
	@[ -f $(STAMP) ] || { $(PYTHON) -m venv $(VENV) && \
	  $(BIN)/python -m pip install --no-compile --quiet --disable-pip-version-check -e . -c constraints.txt; }
	@touch $(DEMO)

# Exit code 1 says that the policies differ (probability at most rho) or that a run was undecided: an answer, no failure.
demo: export PYTHONDONTWRITEBYTECODE :=
demo: $(DEMO)  ## train twice on independent data and compare the two policies
	$(BIN)/reprl twice gridworld-v0 --horizon 6 --rho 0.1 --shared-seed 7 || [ $$? -eq 1 ]

docs: venv  ## build the site in out/site/html; every warning and every dead link is an error
	$(BIN)/python -m website

figures: venv  ## draw every figure, table and number of the documentation again, from stored data alone
	$(BIN)/python -m experiments --draw-only
	$(BIN)/python -m benchmarks --draw-only
	$(BIN)/python -m benchmarks.figures_coupling
	$(BIN)/python -m experiments.numbers

remeasure: venv  ## measure a small part of every experiment anew, in out/, to see that all of it runs
	$(BIN)/python -m experiments --quick

lint: venv  ## ruff, layers and mypy, changing nothing
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo
	$(BIN)/mypy

format: venv  ## apply ruff's fixes and formatting
	$(BIN)/ruff check --fix --exit-zero .
	$(BIN)/ruff format .

# Tests start many processes: Python may keep what it compiles of their sources. Each worker begins with its half of the files, so that
# fewer kernels are compiled by both at once, and helps out at the end.
test test-long: export PYTHONDONTWRITEBYTECODE :=
test: venv lint  ## lint, then the tests
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

test-long: venv  ## the tests that take a minute or so each: faults, the site, the tutorial, the slowest pairs
	$(BIN)/python -m pytest -n $(WORKERS) -m long

# Types and style are checked with the pinned versions alone; the tests need no more than these.
test-oldest:  ## the tests with the oldest versions that are allowed, in .venv-oldest; TESTS="tests/test_cli.py …"
	$(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-oldest.txt -e '.[gym,pandas,dask,logs]' \
	  pytest pytest-timeout pytest-xdist hypothesis quantecon randomgen matplotlib selenium pillow ipykernel nbclient
	$(OLDEST)/bin/python -m pytest -n $(WORKERS) $(TESTS)

fuzz: venv  ## damage and forge files, FILES=100000 of them, SEED=1
	$(BIN)/python -m tests.fuzz_files --files $(FILES) --seed $(SEED)

bench: venv  ## run the benchmarks
	$(BIN)/python -m benchmarks

clean:  ## remove .venv, caches and build outputs
	rm -rf $(VENV) $(OLDEST) build dist out .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name .git -prune -o -type d -name __pycache__ -exec rm -rf {} +
	find . -name .git -prune -o -type d -name '*.egg-info' -exec rm -rf {} +
