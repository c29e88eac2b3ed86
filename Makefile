# The two commands a newcomer needs: `make run` and `make test`. Both make the environment first, once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Test files that run beside each other; every one of them computes with one thread. One more than two cores: browsers,
# servers and killed processes are waited for a fifth of the time.
WORKERS ?= 3

.PHONY: run test suite torture setup lint style types golden wheel clean

run: $(VENV)/.run-ready
	$(BIN)/streamlit run app.py

# Style first, which takes a second; then types beside the tests, which leave that much of the cores idle. Where either
# fails, the other goes on to its end, and make says last which it was.
test: style
	@$(MAKE) --no-print-directory --jobs=2 types suite

suite: $(VENV)/.dev-ready
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

# Fault injection and fuzzing for half an hour: another part of the cases each time, SEED=N repeats one, CASE=inputs:123
# does one case, PARTS=inputs,faults only those. ALL=1 goes through all of them, three hours at most, goes on where it was
# stopped, and writes docs/torture.md.
torture: $(VENV)/.dev-ready
	$(BIN)/python -m tests.torture $(if $(ALL),--all) $(if $(SEED),--seed $(SEED)) $(if $(CASE),--case $(CASE)) \
	  $(if $(PARTS),--parts $(PARTS)) $(if $(MINUTES),--minutes $(MINUTES))

setup: $(VENV)/.dev-ready

# Style, then types: some 40 seconds of one core where .mypy_cache is empty, a second where little has changed.
lint: style types

style: $(VENV)/.dev-ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet .

types: $(VENV)/.dev-ready
	$(BIN)/mypy

# Do the configurations of tests/golden select the ids that the tree of another commit selects? make golden BASE=<commit>
golden: $(VENV)/.dev-ready
	$(BIN)/python -m tests.golden $(BASE)

# dist/*.whl, installed into a fresh environment, where `datamask open` must show the map of a small corpus.
wheel: $(VENV)/.dev-ready
	$(BIN)/python -m tests.wheel $(if $(KEEP),--keep $(KEEP))

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "datamask needs Python 3.11 or newer; name one with: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run-ready: requirements.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	@touch $@

$(VENV)/.dev-ready: requirements-dev.txt $(VENV)/.run-ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	@touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info
