# make demo   the first sweep, on this computer         make test   all tests, with what they need
# make lint   ruff and mypy     make bench   benchmarks     make wheel   sdist and wheel into dist/
# A bare Debian or Ubuntu with python3 is enough. PYTHON=python3.12 make ... chooses another interpreter.

SHELL := /bin/sh
.DELETE_ON_ERROR:

PYTHON ?= python3
VENV := .venv
LITERT_VENV := .venv-litert
PIP_INSTALL := -m pip --disable-pip-version-check -qq install
JOBS ?= 2
HARNESS := $(VENV)/bin/harness

.PHONY: demo test lint bench wheel system litert clean

demo: $(VENV)/.demo
	$(HARNESS) sweep --board host examples/kws.tflite examples/svdf.tflite

test: system $(VENV)/.test lint litert
	$(VENV)/bin/python -m pytest -n $(JOBS) $(PYTEST_ARGS)

lint: $(VENV)/.test
	$(VENV)/bin/python -m ruff check .
	$(VENV)/bin/python -m ruff format --check --quiet .
	$(VENV)/bin/python -m mypy

bench: $(VENV)/.test
	$(VENV)/bin/python benchmarks/run.py

wheel: $(VENV)/.test
	@rm -rf dist
	$(VENV)/bin/python -m hatchling build -d dist > /dev/null
	@ls -1 dist

# Compiler, browser, database for the tests: installed when root, named otherwise; the tests that lack one say so and skip.
system:
	@PYTHON="$(PYTHON)" .ci/system-packages

# The other LiteRT package, in an environment of its own: the two cannot live in one, they want different numpys.
litert: $(LITERT_VENV)/.ready
	@if [ -x $(LITERT_VENV)/bin/harness ]; then \
	  $(LITERT_VENV)/bin/python -m pytest -m backend $(PYTEST_ARGS); \
	else echo "litert: $$(cat $(LITERT_VENV)/.ready)"; fi

$(VENV)/bin/python:
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); .ci/venv-hint $(PYTHON); exit 1; }

$(VENV)/.demo: pyproject.toml Makefile | $(VENV)/bin/python
	$(VENV)/bin/python $(PIP_INSTALL) -e '.[pyocd,sim]'
	@touch $@

$(VENV)/.test: pyproject.toml Makefile | $(VENV)/bin/python
	$(VENV)/bin/python $(PIP_INSTALL) -e '.[parquet,plot,postgres,pyocd,sim,test]'
	@touch $@ $(VENV)/.demo

$(LITERT_VENV)/.ready: pyproject.toml $(VENV)/.test
	@.ci/litert-environment $(VENV)/bin/python $(LITERT_VENV)
	@touch $@

clean:
	rm -rf $(VENV) $(LITERT_VENV) dist build .pytest_cache .mypy_cache .ruff_cache
