# Every target sets up what it needs in .venv first; `make demo` and `make test` are all a fresh machine has to run.
SHELL := /bin/bash
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow lint types docs images bench lock check clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

$(INSTALLED): pyproject.toml constraints.txt plugins/opendp-bayes-template/pyproject.toml plugins/opendp-bayes-smoothed/pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --group test --group lint --group docs \
		--editable '.[composition,demo]' --editable plugins/opendp-bayes-template --editable plugins/opendp-bayes-smoothed
	touch $@

demo: $(INSTALLED) ## Release private posteriors of real data
	$(BIN)/opendp-bayes demo

test: $(INSTALLED) ## Run the tests, the docstrings and the code of every page
	$(BIN)/python -m pytest

test-slow: $(INSTALLED) ## Run the statistical sweeps and the large inputs
	$(BIN)/python -m pytest -m slow

lint: $(INSTALLED) ## Check style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(INSTALLED) ## Check types
	$(BIN)/mypy

docs: $(INSTALLED) ## Build the documentation into site/
	$(BIN)/mkdocs build --strict

images: $(INSTALLED) ## Draw the pictures of the documentation again; needs Pango
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --group images
	$(BIN)/python docs/make_images.py

bench: $(INSTALLED) ## Measure cost against what a user would use instead
	$(BIN)/python -m benchmarks

check: lint types test docs ## Everything CI runs

lock: ## Resolve the newest versions again and write constraints.txt
	rm -rf $(VENV) && : > constraints.txt && $(MAKE) $(INSTALLED)
	$(BIN)/python -m pip freeze --all --exclude-editable | grep -v '^opendp-bayes' > constraints.txt

clean: ## Remove the environment and everything built
	rm -rf $(VENV) site dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
