# make demo, make test, make check: each makes its own environment first and needs only Python 3.11+.
VENV ?= .venv
ARGS ?=
WORKERS ?= 3
BIN := $(VENV)/bin
READY := $(VENV)/.installed
HOUSE := PYTHONPATH=tests $(BIN)/python -m house.gate

.PHONY: demo test soak fuzz bench-match check lint types imports house capabilities format lock hooks clean

demo: $(READY) ## the whole chain on this machine: a toy training fails, is rescued, fails for good
	$(BIN)/midwatch demo $(ARGS)

test: $(READY) ## all tests, WORKERS files at a time; ARGS="tests/unit -k stall" for some; OELLM=CLONE too
	$(BIN)/pytest -n $(WORKERS) --dist loadfile $(ARGS)

soak: $(READY) ## the state base under every fault, ROUNDS times, seeds printed
	MIDWATCH_SOAK_ROUNDS=$(or $(ROUNDS),5) $(BIN)/pytest tests/faults/soak/test_soak.py -s

fuzz: $(READY) ## 2,000,000 made-up pairs of rule and text: matching finds what google-re2 finds line by line
	FUZZ_CASES=$(or $(FUZZ_CASES),2000000) $(BIN)/pytest tests/fuzz -s -k re2_says

bench-match: $(READY) ## how fast rules are matched beside the other ways, on 200 MB of each workload
	PYTHONPATH=tests $(BIN)/python -m bench.match --megabytes 200 $(ARGS)

check: lint types imports house ## the gate without the tests; make -k check tells all findings at once

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

imports: $(READY)
	$(BIN)/lint-imports

house: $(READY) ## dead links, shape of the tree, stale docs/capabilities.md
	$(HOUSE)

capabilities: $(READY) ## write docs/capabilities.md from the marks of the tests
	$(HOUSE) write-capabilities

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

hooks: $(READY) ## run the quick part of the gate before each commit
	$(BIN)/pre-commit install

$(READY): requirements/dev.lock pyproject.toml tests/house/environment.sh
	@sh tests/house/environment.sh $(VENV)
	@touch $@

# Locks are renewed by a pinned uv of its own; UPGRADE=1 takes newer versions, else only what is missing.
COMPILE = $(VENV)/lock/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-annotate --no-header
lock: $(VENV)/lock/bin/uv ## renew requirements/*.lock from pyproject.toml
	$(COMPILE) pyproject.toml --all-extras $(if $(UPGRADE),--upgrade) -o requirements/dev.lock
	$(COMPILE) pyproject.toml --extra server --extra otel -c requirements/dev.lock -o requirements/server.lock
	$(COMPILE) pyproject.toml -c requirements/dev.lock -o requirements/base.lock
	echo hatchling | $(COMPILE) - -c requirements/dev.lock -o requirements/build.lock

$(VENV)/lock/bin/uv: requirements/uv.lock | $(READY)
	$(BIN)/python -m venv --clear $(VENV)/lock
	$(VENV)/lock/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/uv.lock
	@touch $@

clean: ## remove the environments and all that was built
	rm -rf $(VENV) dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .grimp_cache
	find streams rules shippers agents tests -name __pycache__ -type d -exec rm -rf {} +
