# Every target sets up what it needs in .venv first; `make demo` and `make test` are all a fresh machine has to run.
SHELL := /bin/bash
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
CONSTRAINTS := constraints.txt
PIP := $(BIN)/python -m pip install --quiet --constraint $(CONSTRAINTS)
PROJECT := pyproject.toml $(CONSTRAINTS)
PLUGINS := plugins/opendp-bayes-template plugins/opendp-bayes-smoothed plugins/opendp-bayes-engines plugins/opendp-bayes-office plugins/opendp-bayes-research
# Python keeps what it compiled, whatever the environment says: every process would compile every package again.
export PYTHONDONTWRITEBYTECODE :=
# Stamps of what is installed, each on top of the one before.
FOR_DEMO := $(VENV)/.demo
FOR_TESTS := $(VENV)/.tests
FOR_TOOLS := $(VENV)/.tools
# A file at a time and a process a core: tests of one file share what they computed, and the code of one page its names. Every
# process calculates in one thread.
PYTEST := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses=auto --maxprocesses=4 --dist=loadfile --no-loadscope-reorder

# Every Python that is promised.
PYTHONS := 3.10 3.11 3.12 3.13 3.14
# The tests in which another Python or other packages show: files, columns, engines, the command line, pages, and what a user installs.
# Sampling, accounting and inference are arithmetic and take most of the time.
QUICK := $(shell cat tests/quick.txt)

SINCE ?= main
# Mistakes to plant in each module; 0 for all, which takes days.
NUMBER ?= 10

.DEFAULT_GOAL := help
.PHONY: help demo test test-quick test-changed test-versions test-lowest test-slow test-spark lint types docs release images papers mutants bench bench-timing lock check clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-13s %s\n", $$1, $$2}'

# Python compiles what is imported, which of these packages is little.
$(FOR_DEMO): $(PROJECT)
	$(PYTHON) -m venv $(VENV)
	$(PIP) --no-compile --editable '.' --editable './plugins/opendp-bayes-office[demo]'
	touch $@

$(FOR_TESTS): $(FOR_DEMO) $(PLUGINS:=/pyproject.toml)
	$(PIP) --upgrade pip
	$(PIP) --no-compile --group test --editable '.' $(addprefix --editable ,$(PLUGINS))
	touch $@

$(FOR_TOOLS): $(FOR_TESTS)
	$(PIP) --group lint --group docs
	touch $@

demo: $(FOR_DEMO) ## Release private posteriors of real data
	$(BIN)/opendp-bayes demo

test: $(FOR_TESTS) ## Run the tests, the docstrings and the code of every page
	$(PYTEST)

test-quick: $(FOR_TESTS) ## Run the tests in which another Python or other packages show
	$(PYTEST) $(QUICK)

test-changed: $(FOR_TESTS) ## Run the tests of rooms that differ from SINCE=main, and of those above them
	@changed="$$($(BIN)/python -m tests.helpers.changed $(SINCE))"; test -z "$$changed" || $(PYTEST) $$changed

# Each has an environment of its own; one that is not on this machine is named and left out.
test-versions: ## Run the demonstration and all tests with every Python that is promised
	@failed=; for version in $(PYTHONS); do \
	    python=$$(.ci/python $$version) || continue; echo "Python $$version"; \
	    $(MAKE) demo test PYTHON=$$python VENV=$(VENV)-$$version || failed="$$failed $$version"; \
	done; test -z "$$failed" || { echo "red:$$failed"; exit 1; }

# Versions that are older than Python 3.13 have no wheels for it, and do in silence what newer packages have deprecated.
test-lowest: ## Run the quick tests with the lowest versions that pyproject.toml accepts; needs a Python before 3.13
	$(MAKE) demo test-quick VENV=$(VENV)-lowest CONSTRAINTS=constraints-lowest.txt QUICK='$(QUICK) -W ignore::DeprecationWarning'

# Sweeps are long and their cases independent: a process that has none left takes some from another's file.
test-slow: $(FOR_TESTS) ## Run the statistical sweeps and the large inputs
	$(PYTEST) --dist=worksteal -m slow
	LONG_CHAINS=1 $(PYTEST) README.md docs

test-spark: $(FOR_TESTS) ## Run the slow tests of frames on Spark too; needs Java 17 and 500 MB for pyspark
	$(PIP) --group spark
	$(BIN)/python -m pytest -m slow plugins/opendp-bayes-engines

lint: $(FOR_TOOLS) ## Check style, formatting and which way imports go
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo

types: $(FOR_TOOLS) ## Check types, also as a user of the package sees them
	$(BIN)/mypy
	$(BIN)/mypy tests/helpers/typed_queries.py
	cd benchmarks && $(abspath $(BIN)/mypy) --config-file mypy.ini $$(ls *.py | grep -v __main__)
	$(BIN)/python docs/check_types.py README.md docs/tutorial.md

docs: $(FOR_TOOLS) ## Build the documentation into site/
	$(BIN)/zensical build --strict

release: $(FOR_TESTS) ## Build what is published into dist/, twice, and try each package in an environment of its own
	$(PIP) --group release
	PYTHON=$(abspath $(BIN))/python .ci/release

images: $(FOR_TOOLS) ## Draw the pictures of the documentation again; needs Pango
	$(PIP) --group images
	$(BIN)/python docs/make_images.py

mutants: $(FOR_TOOLS) ## Plant mistakes and see which no test notices: NUMBER= of each module
	$(PIP) --group mutants
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.mutants --number $(NUMBER)

papers: $(FOR_TESTS) ## Draw the papers' figures again, with their numbers, and fill the page of verdicts
	for script in examples/papers/{figure,table,theorem}_*.py; do $(BIN)/python $$script || exit 1; done
	$(BIN)/python examples/papers/page.py

bench: $(FOR_TESTS) ## Measure cost against what a user would use instead; all but `bench-timing`
	$(BIN)/python -m benchmarks

bench-timing: $(FOR_TESTS) ## Measure what the time of a release tells of the data; sleeps for about an hour
	$(BIN)/python benchmarks/timing.py

check: demo lint types test docs ## Everything CI runs

# One file for every Python that is promised: what holds for some has a marker. uv knows where packages come from by its own settings.
RESOLVE = $(BIN)/uv pip compile --quiet --upgrade --universal --python-version $(firstword $(PYTHONS)) --no-annotate \
    --custom-compile-command 'make lock' --no-emit-package opendp-bayes pyproject.toml plugins/*/pyproject.toml --all-extras --group test

lock: $(FOR_TESTS) ## Resolve the newest and the lowest versions again, and write constraints.txt and constraints-lowest.txt
	$(PIP) --group lock
	$(RESOLVE) --output-file constraints.txt $(addprefix --group ,spark lint docs mutants lock release)
	$(RESOLVE) --output-file constraints-lowest.txt --resolution lowest-direct

clean: ## Remove the environment and everything built
	rm -rf $(VENV) $(VENV)-* .mutants site dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
