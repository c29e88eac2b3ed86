# The two commands a newcomer needs: `make run` and `make test`. Both make the environment first, once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Test files that run beside each other; every one of them computes with one thread. One more than two cores: browsers,
# servers and killed processes are waited for a fifth of the time.
WORKERS ?= 3

# Python compiles what it imports, once; pip would compile everything, most of which is never imported: half of its time.
PIP_OPTIONS := --quiet --disable-pip-version-check --no-compile

.PHONY: run test suite torture setup lint style types docs golden wheel clean

run: $(VENV)/.run-ready
	$(BIN)/streamlit run app.py

# Before every test: style, and what a fresh clone compiles once, beside each other; where style fails nothing more is
# begun. Types are looked at beside the tests, while these wait for browsers, servers and killed processes. Where either
# fails the other goes on to its end, and what is wrong with the types is said last: a second, from mypy's cache.
test:
	@$(MAKE) --no-print-directory --jobs=2 style $(VENV)/.compiled $(VENV)/.collected
	@$(MAKE) --no-print-directory --jobs=2 --keep-going types suite || \
	  { $(BIN)/mypy >$(VENV)/types.log || cat $(VENV)/types.log; exit 1; }

suite: $(VENV)/.dev-ready
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

# Of each kind of inner loop a test, which has numba compile it and keeps that on disk: begun beside each other in a fresh
# clone, tests would compile them all again and again, for half a minute each. They need pytest and no more, so they begin
# while the rest is being installed. What fails here fails where all are run; what is missing (exit code 4) fails here.
LOOPS := corpus/projections/test_layouts.py::test_umap_itself_keeps_clusters_apart_on_the_one_graph_alone \
  corpus/test_partition_search.py::test_exactly_the_probed_pairs_are_compared \
  learning/test_block_swaps.py::test_where_it_ends_no_single_swap_helps \
  learning/test_limits.py::test_solvers_fill_the_budget_and_bounds_hold \
  learning/test_medoids.py learning/test_winner_tree.py objectives/test_facility.py

LOOP_FILES := $(foreach loop,$(LOOPS),tests/$(firstword $(subst ::, ,$(loop))))

$(VENV)/.compiled: $(shell grep -rl "compiled" datamask --include="*.py") $(LOOP_FILES) $(VENV)/.pytest-ready
	@echo "tests of inner loops, which compile them once: some 40 seconds of one core"
	@$(BIN)/python -m pytest $(addprefix tests/,$(LOOPS)) >$@.log 2>&1 || [ $$? -ne 4 ] || \
	  { echo "LOOPS in the Makefile names a test that there is not:"; grep "^ERROR" $@.log; exit 1; }
	@mv $@.log $@

# In a fresh clone pytest rewrites every test module and keeps that on disk: workers that begin side by side would each do
# it for all, in thirteen seconds of a core. A module that cannot be read fails where all tests are run.
$(VENV)/.collected: $(VENV)/.dev-ready | style
	@$(BIN)/python -m pytest --collect-only --quiet --quiet >$@.log 2>&1 || true
	@mv $@.log $@

# Fault injection and fuzzing for half an hour: another part of the cases each time, SEED=N repeats one, CASE=inputs:123
# does one case, PARTS=inputs,faults only those. ALL=1 goes through all of them, three hours at most, goes on where it was
# stopped, and writes docs/torture.md.
torture: $(VENV)/.dev-ready
	$(BIN)/python -m tests.torture $(if $(ALL),--all) $(if $(SEED),--seed $(SEED)) $(if $(CASE),--case $(CASE)) \
	  $(if $(PARTS),--parts $(PARTS)) $(if $(MINUTES),--minutes $(MINUTES))

setup: $(VENV)/.dev-ready

# Style, types and the site: some 60 seconds of one core where .mypy_cache is empty, 20 where little has changed.
lint: style types docs

style: $(VENV)/.dev-ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet .

# Behind the tests beside it in the line for the processor, yet not last: with what they leave it would end a minute later.
types: style
	nice -n 6 $(BIN)/mypy

# The documentation as a site, in build/site. A link or an anchor that leads nowhere, or a page that the navigation leaves
# out, fails it.
docs: $(VENV)/.docs-ready
	NO_MKDOCS_2_WARNING=1 nice -n 5 $(BIN)/python -m mkdocs build --strict

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
	$(BIN)/python -m pip install $(PIP_OPTIONS) -r requirements.txt
	$(BIN)/python -m pip install $(PIP_OPTIONS) --no-deps --editable .
	@touch $@

$(VENV)/.pytest-ready: requirements-dev.txt $(VENV)/.run-ready
	$(BIN)/python -m pip install $(PIP_OPTIONS) $$(grep -E "^(pytest|hypothesis)" requirements-dev.txt)
	@touch $@

$(VENV)/.dev-ready: requirements-dev.txt $(VENV)/.pytest-ready
	$(BIN)/python -m pip install $(PIP_OPTIONS) -r requirements-dev.txt
	@touch $@

$(VENV)/.docs-ready: requirements-docs.txt $(VENV)/.run-ready
	$(BIN)/python -m pip install $(PIP_OPTIONS) -r requirements-docs.txt
	@touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info
