# On a machine with Python >= 3.11 and nothing else installed:
#   make demo    see it work        make test    run everything that is tested
# See CONTRIBUTING.md for the rest.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
CACHE  := $(CURDIR)/.cache

# One thread per process, and nothing is written outside this folder.
export OMP_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1
export MPLCONFIGDIR := $(CACHE)/matplotlib
export IPYTHONDIR := $(CACHE)/ipython
export JUPYTER_CONFIG_DIR := $(CACHE)/jupyter/config
export JUPYTER_DATA_DIR := $(CACHE)/jupyter/data
export JUPYTER_RUNTIME_DIR := $(CACHE)/jupyter/runtime
export RUFF_CACHE_DIR := $(CACHE)/ruff
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help demo test docs bench notebooks export format lab clean
.DEFAULT_GOAL := help

help: ## this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: $(VENV)/package ## install the package and run the main job: MT-KB against independent tasks
	$(BIN)/mtbo demo

test: $(VENV)/tools ## everything that is tested; STEPS="lint types" runs some of it
	$(BIN)/python tools/test.py $(STEPS)

docs: $(VENV)/tools ## the site, into _docs/
	$(BIN)/python tools/docs.py

bench: $(VENV)/package ## the benchmarks, ratios within one run
	@set -e; for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python $$script; done

notebooks: $(VENV)/tools ## run all notebooks in place (NB=nbs/name.ipynb: one) and export
	$(BIN)/python tools/execute.py $(NB)
	$(BIN)/python tools/export.py

export: $(VENV)/tools ## clean the notebooks, write the package and README.md from them
	$(BIN)/python tools/export.py

format: $(VENV)/tools ## format notebooks and scripts, mend what the linter can mend
	$(BIN)/ruff check --fix --quiet . || true
	$(BIN)/ruff format .

lab: $(VENV)/tools ## JupyterLab in the project's environment
	$(BIN)/python -m pip install --quiet jupyterlab
	$(BIN)/jupyter lab nbs

clean: ## remove everything that make made
	rm -rf $(VENV) .cache _docs build dist *.egg-info .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The environment: first the package alone, as a user gets it; then the tools.
$(VENV)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Python 3.11 or later is needed, $(PYTHON) is older: make PYTHON=/path/to/python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/package: $(VENV)/python settings.ini setup.py
	$(BIN)/python -m pip install --quiet --config-settings editable_mode=compat --editable .
	@touch $@

$(VENV)/tools: $(VENV)/package
	$(BIN)/python -m pip install --quiet --config-settings editable_mode=compat --editable '.[dev,docs]'
	@touch $@
