# make demo, make test, make check: each makes its own environment first and needs only Python 3.11+.
VENV ?= .venv
ARGS ?=
LABELS ?= ../shared/data/failures
WORKERS ?= 4
UNIT_WORKERS ?= 3
BIN := $(VENV)/bin
READY := $(VENV)/.installed
RAY_VENV ?= .ray-venv
RAY := $(RAY_VENV)/.made-from.lock
HOUSE := PYTHONPATH=tests $(BIN)/python -m house.gate

# The tests start hundreds of Python processes: none of them should have to compile what another has compiled.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test unit images chaos chaos-reload fuzz bench-match bench-prototype bench-latency bench-replay picture
.PHONY: fit-diagnosis bench-prefixes bench-unknown-words bench-last-words bench-telemetry test-otel check-dashboards check lint
.PHONY: types imports house capabilities pages format lock hooks clean

demo: $(READY) $(if $(findstring ray,$(ARGS)),$(RAY)) ## a toy training fails, is rescued; ARGS="--cluster ray"
	PATH="$(abspath $(RAY_VENV))/bin:$$PATH" $(BIN)/midwatch demo $(ARGS)

test: $(READY) ## all tests, WORKERS files at a time, for most wait; ARGS="tests/unit -k stall" for some; OELLM=CLONE too
	$(BIN)/pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder $(ARGS)

unit: $(READY) ## all that needs no services, with a sixth of the made-up cases
	QUICK=1 $(BIN)/pytest -n $(UNIT_WORKERS) --dist loadfile tests/unit tests/replay tests/house $(ARGS)

chaos: $(READY) ## every fault ROUNDS times, seeds printed, SEED=N repeats; ARGS="--only agents --workers 2"
	PYTHONPATH=tests $(BIN)/python -m faults.chaos $(if $(SEED),--seed $(SEED)) --rounds $(or $(ROUNDS),10) $(ARGS)

fuzz: $(READY) ## 2,000,000 made-up pairs of rule and text: matching finds what google-re2 finds line by line
	FUZZ_CASES=$(or $(FUZZ_CASES),2000000) FUZZ_BLOCK_CASES=$(or $(FUZZ_BLOCK_CASES),200000) \
		$(BIN)/pytest tests/fuzz -s -k re2_says

chaos-reload: $(READY) ## SWAPS swaps of rules under load, LINES numbered lines; RESULTS=FILE keeps the counts
	MIDWATCH_RELOAD_SWAPS=$(or $(SWAPS),100) MIDWATCH_RELOAD_LINES=$(or $(LINES),1000000) \
	MIDWATCH_RELOAD_EDITS=$(or $(EDITS),20) MIDWATCH_RELOAD_PEACE=5 \
	MIDWATCH_RELOAD_RESULTS=$(abspath $(RESULTS)) $(BIN)/pytest tests/integration/reload/test_swaps.py -s

test-otel: $(READY) ## traces under fire; a real collector, Prometheus 3 and Loki, which Go builds once (minutes)
	$(BIN)/pytest tests/integration/telemetry/test_on_the_chain.py tests/integration/telemetry/long_runs.py \
		tests/integration/observe/otlp_runs.py $(ARGS)

check-dashboards: $(READY) ## the dashboards against Grafana's own types; needs npm
	$(BIN)/pytest tests/grafana_schema/dashboards_by_tsc.py $(ARGS)

picture: $(READY) ## the demo's transcript as docs/demo.svg and in the README, from a real run
	PYTHONPATH=tests $(BIN)/python -m bench.picture

bench-telemetry: $(READY) ## what telemetry costs match while it is off and while it is on
	PYTHONPATH=tests $(BIN)/python -m bench.telemetry $(ARGS)

bench-match: $(READY) ## how fast rules are matched beside the other ways, on 200 MB of each workload
	PYTHONPATH=tests $(BIN)/python -m bench.match --megabytes 200 $(ARGS)

bench-prototype: $(READY) ## matching beside its first prototype, whose folder is LAB
	PYTHONPATH=tests $(BIN)/python -m bench.match_prototype $(abspath $(LAB)) $(ARGS)

bench-replay: $(READY) ## `midwatch replay` of a small log, beside a bare interpreter
	PYTHONPATH=tests $(BIN)/python -m bench.small_log

FIT := $(foreach part,root chance,$(wildcard tests/bench/fit_$(part).py))
fit-diagnosis: $(READY) ## what the verdicts learned from labelled logs in the folder LABELS, and how it fares
	set -e; $(foreach file,$(FIT),PYTHONPATH=tests $(BIN)/python -m bench.$(basename $(notdir $(file))) $(LABELS);)

bench-prefixes: $(READY) ## which verdicts change with what launchers print in front of each line of the logs in LABELS
	PYTHONPATH=tests $(BIN)/python -m bench.prefixes $(LABELS)

bench-unknown-words: $(READY) ## what is left of the verdicts on the logs in LABELS where their rules are missing
	PYTHONPATH=tests $(BIN)/python -m bench.unknown_words $(LABELS)

bench-last-words: $(READY) ## what detect spends on the last words of 4,096 ranks, in CPU seconds
	PYTHONPATH=tests $(BIN)/python -m bench.last_words $(ARGS)

bench-latency: $(READY) ## how soon, on each cluster: line to incident, to command, to the new start; each process killed
	PYTHONPATH=tests $(BIN)/python -m bench.latency $(ARGS)

images: $(READY) ## build and run each stage of the Dockerfile with Python 3.11 and 3.13, without Docker
	IMAGES=1 $(BIN)/pytest tests/images $(ARGS)

check: lint types imports house ## the gate without the tests; make -k check tells all findings at once

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

imports: $(READY)
	$(BIN)/lint-imports

house: $(READY) ## dead links, shape of the tree, stale pages
	$(HOUSE)

capabilities: $(READY) ## write docs/capabilities.md from the marks of the tests
	$(HOUSE) write-capabilities

pages: $(READY) ## write every page and file that code writes: settings, rules, formats, telemetry, observe
	$(HOUSE) write-pages

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

hooks: $(READY) ## run the quick part of the gate before each commit
	$(BIN)/pre-commit install

$(READY): requirements/dev.lock pyproject.toml tests/house/environment.sh
	@sh tests/house/environment.sh $(VENV)
	@touch $@

# Ray for its tests and its demo: an environment of its own, from a lock of its own, kept out of ours.
$(RAY): requirements/ray.lock | $(READY)
	$(BIN)/python -m venv --clear $(RAY_VENV)
	$(RAY_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@cp $< $@

# Locks are renewed by a pinned uv of its own; UPGRADE=1 takes newer versions, else only what is missing.
COMPILE = $(VENV)/lock/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-annotate --no-header
lock: $(VENV)/lock/bin/uv ## renew requirements/*.lock from pyproject.toml
	$(COMPILE) pyproject.toml --all-extras $(if $(UPGRADE),--upgrade) -o requirements/dev.lock
	$(COMPILE) pyproject.toml --extra server --extra otel -c requirements/dev.lock -o requirements/server.lock
	$(COMPILE) pyproject.toml -c requirements/dev.lock -o requirements/base.lock
	echo 'ray[default,train]==2.60.0' | $(COMPILE) - -o requirements/ray.lock
	echo hatchling | $(COMPILE) - -c requirements/dev.lock -o requirements/build.lock

$(VENV)/lock/bin/uv: requirements/uv.lock | $(READY)
	$(BIN)/python -m venv --clear $(VENV)/lock
	$(VENV)/lock/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/uv.lock
	@touch $@

clean: ## remove the environments and all that was built
	rm -rf $(VENV) $(RAY_VENV) $(RAY_VENV).lock dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .grimp_cache
	find streams rules shippers agents tests -name __pycache__ -type d -exec rm -rf {} +
