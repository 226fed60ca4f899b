# Thin on purpose: what the targets do is in ops/, in Python.
PYTHON ?= python3
VENV := .venv/bin/python
# Reach the recipes as environment variables, so that any character in a path is safe.
export HOURS CLICKS LOGS FORMAT SOURCE SITE TIME_ZONE RATE CLICKMILL_HOME

.DEFAULT_GOAL := help
.PHONY: help setup run stream stream-stop stop status clean test test-all compose-test compose-test-quick compose-env test-faults lint types unit bench bench-stream bench-cluster lock class-lists

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

setup: ## install everything into .venv and .jars, tests' tools too; does nothing when it is there
	@$(PYTHON) -m ops.bootstrap --dev

run: ## sample logs (HOURS=12 CLICKS=20000 an hour) or your own (LOGS=path, SITE=https://…, TIME_ZONE=Europe/Berlin, or SOURCE=name): from set-up to result
	@$(PYTHON) -m ops.bootstrap
	@$(VENV) -m clickmill run

stream: ## a broker, sample clicks (RATE=200 a second) and the stream of them, shown until Ctrl-C; or a streamed source of yours (SOURCE=name)
	@$(PYTHON) -m ops.bootstrap --broker
	@$(VENV) -m clickmill show-stream

stream-stop: ## end a stream that was left behind
	@$(VENV) -m clickmill stop-streams

stop: ## end the services; the data stays
	@if [ -x $(VENV) ]; then $(VENV) -m clickmill stop; else echo "no services ran"; fi

status: ## show the services and their addresses
	@$(VENV) -m clickmill status

clean: ## end the services and remove the data (CLICKMILL_HOME, by default var/); the set-up stays
	@if [ -x $(VENV) ]; then $(VENV) -m clickmill clean; else echo "nothing to clean: no set-up in .venv"; fi

test: setup lint types ## ruff, mypy, all tests without servers, and one real path through each capability
	@$(VENV) -m pytest -n $${CLICKMILL_TEST_PROCESSES:-2} -m "path or not servers"

test-all: setup lint types ## ruff, mypy and all tests, as CI does
	@$(VENV) -m pytest -n $${CLICKMILL_TEST_PROCESSES:-2}

lint:
	@$(VENV) -m ruff check .
	@$(VENV) -m ruff format --check .
	@$(dir $(VENV))lint-imports

types:
	@$(VENV) -m mypy

unit: ## the quick tests without servers, while you work
	@$(VENV) -m pytest -q -n $${CLICKMILL_TEST_PROCESSES:-2} -m "not servers and not slow"

compose-test: setup ## build the image and run docker-compose.yml for real, by Docker or podman
	@$(VENV) -m pytest -x tests/containers

compose-test-quick: setup ## the same without killing containers, a stream and the small file, as CI does
	@$(VENV) -m pytest -x -m "not slow" tests/containers

compose-env: ## make the passwords and keys that docker-compose.yml needs, in .env
	@$(PYTHON) -m ops.compose_env

test-faults: setup ## kill streams and jobs at many random moments (CLICKMILL_FAULT_ROUNDS=24)
	@CLICKMILL_FAULT_ROUNDS=$${CLICKMILL_FAULT_ROUNDS:-24} $(VENV) -m pytest -s -o faulthandler_timeout=0 -m faults tests

bench: setup ## measure the pipeline on this machine
	@$(VENV) -m benchmarks.bench

bench-stream: setup ## measure the stream: clicks a second from Kafka, seconds until a click is readable
	@$(VENV) -m benchmarks.bench_stream

bench-cluster: setup ## measure one and two Spark workers on the same work, data in S3
	@$(VENV) -m benchmarks.bench_cluster

lock: setup ## compile locks/*.txt from locks/*.in
	@$(VENV) -m ops.lock

class-lists: setup ## list the classes that set-up archives, after a change of JARs
	@$(VENV) -m ops.class_lists
