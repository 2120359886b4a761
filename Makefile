# One entry point for people and for CI. Every target sets up what it needs.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
WORKERS ?= 2
# what test-lowest runs; CI takes fewer, because every one of them compiles anew there
SMOKE ?= tests
# what CI adds to pytest
COVERAGE ?=

.PHONY: help demo test test-long test-slow test-lowest test-modin lint format docs docs-check docs-gallery bench bench-quick dist clean

help:
	@echo "make demo         set up, then run the main job on embedded data"
	@echo "make test         set up, then run the tests"
	@echo "make test-long    those that start processes and browsers; CI runs them too"
	@echo "make test-slow    the long simulations"
	@echo "make test-lowest  the smoke tests with the lowest supported dependency versions"
	@echo "make test-modin   data frames of Modin, which needs an older pandas than the rest"
	@echo "make lint         ruff, mypy --strict, import-linter, zizmor, spelling, docstrings, typed examples"
	@echo "make docs         the documentation, warnings are errors; gallery pages without their runs"
	@echo "make docs-gallery the documentation with every example run"
	@echo "make dist         build wheel and sdist, check them, try the wheel in a fresh environment"
	@echo "make bench        every benchmark in benchmarks/"
	@echo "make bench-quick  what became slower against the stored ratios (about two minutes)"

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# The stamps keep a second run from touching pip at all.
$(VENV)/.demo: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[export]"
	touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	touch $@ $(VENV)/.demo

$(VENV)/.docs: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[docs]"
	touch $@ $(VENV)/.demo

demo: $(VENV)/.demo
	$(BIN)/buttress demo

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n $(WORKERS) -m "not slow and not long" $(COVERAGE)

test-long: $(VENV)/.dev
	$(BIN)/python -m pytest -n $(WORKERS) -m "long and not slow" $(COVERAGE)

test-slow: $(VENV)/.dev
	$(BIN)/python -m pytest -n $(WORKERS) -m slow

test-lowest:
	test -x $(VENV)-lowest/bin/python || $(PYTHON) -m venv $(VENV)-lowest
	$(VENV)-lowest/bin/python -m pip install --quiet --disable-pip-version-check \
		--constraint tests/lowest.txt --editable "." pytest pytest-xdist hypothesis
	$(VENV)-lowest/bin/python -m pytest -q -n $(WORKERS) -m smoke -p no:cacheprovider $(SMOKE)

test-modin:
	test -x $(VENV)-modin/bin/python || $(PYTHON) -m venv $(VENV)-modin
	$(VENV)-modin/bin/python -m pip install --quiet --disable-pip-version-check \
		--editable ".[data]" modin polars duckdb pytest hypothesis
	MODIN_ENGINE=python $(VENV)-modin/bin/python -m pytest -q -p no:cacheprovider tests/tables/test_frames.py

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/zizmor --quiet --offline .github
	$(BIN)/codespell
	$(BIN)/python tools/check_docstrings.py
	$(BIN)/python tools/check_examples.py

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Running the gallery's examples takes minutes; their pages say so where they were not run.
docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -W --keep-going -D plot_gallery=0 -b html docs docs/_build/html

# The pages in a browser: nothing cut off, no dead link, formulas set.
docs-check: docs $(VENV)/.dev
	BUTTRESS_SITE=docs/_build/html $(BIN)/python -m pytest -q -p no:cacheprovider tests/docs/test_site.py

docs-gallery: $(VENV)/.docs
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html

dist: $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check build twine
	rm -rf dist && $(BIN)/python -m build --outdir dist .
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python tools/check_dist.py dist

bench: $(VENV)/.dev
	for script in benchmarks/[a-z]*.py; do $(BIN)/python $$script || exit 1; done

# Ratios to yardsticks of the same run, one thread each; prints what moved by more than 15 %.
bench-quick: $(VENV)/.dev
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 NUMBA_NUM_THREADS=1 $(BIN)/python benchmarks/quick.py

clean:
	rm -rf $(VENV) $(VENV)-lowest $(VENV)-modin docs/_build .mypy_cache .ruff_cache .pytest_cache
