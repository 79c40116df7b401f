# Needs Python >= 3.11, make, and a registry that pip can reach. Java is brought along if the machine has none.
# Everything is installed into .venv, once; a second call installs nothing.

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip -qq --disable-pip-version-check

# The first Python that is new enough and can make virtual environments; `make PYTHON=...` takes another.
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3.14 python3 python; do \
	$$p -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)

# A stamp is named after what it was made from, and after where it stands: a virtual environment cannot be moved.
key = $(shell { pwd; cat $(1); } | cksum | tr ' ' '-')
PACKAGES := $(VENV)/.packages-$(call key,requirements.lock)
READY := $(VENV)/.ready-$(call key,requirements.lock pyproject.toml)

# What is compiled is kept: tests, demos and commands start many processes.
unexport PYTHONDONTWRITEBYTECODE

BENCHES = $(basename $(notdir $(shell grep -l __main__ bench/*.py)))
DEMOS := retail

.PHONY: help demo test test-pure fuzz check format bench docs lock clean tpch

help:
	@echo "make demo         see it work          make demo NAME=retail   policies and viewgroups"
	@echo "make test         all tests            make test-pure   neither Spark nor a database server, within a minute"
	@echo "make fuzz N=20000 random queries, data and changes against a recompute, on two cores"
	@echo "make check        linters and types    make format      what can be put right by itself"
	@echo "make tpch ROUNDS=10  the 22 queries of TPC-H as views, audited after every round"
	@echo "make bench NAME=  one of: $(BENCHES)"
	@echo "make docs         docs/conformance.md  make lock        requirements.lock    make clean"

demo: $(READY)
	@$(if $(filter-out $(DEMOS),$(NAME)),echo "which one? make demo NAME=... with one of: $(DEMOS)" >&2; exit 2)
	@$(BIN)/matview demo $(NAME)
	@$(if $(NAME),,echo "Another one: make demo NAME=retail")

# Two processes, each with a Spark of its own when it needs one; a file goes to the next that is free, the longest first:
# those with Spark, or those with the most tests.
PYTEST := $(BIN)/pytest --numprocesses 2 --dist loadfile

test: $(READY)
	@$(PYTEST) --no-loadscope-reorder

test-pure: $(READY)
	@$(PYTEST) -m "not spark and not database"

# As many random cases as asked for; what fails is made small and kept in tests/queries/seeds.
N ?= 20000
fuzz: $(READY)
	@$(BIN)/python -m tests.fuzz --cases $(N)

check: $(READY)
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/lint-imports --cache-dir .cache/imports

format: $(READY)
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

tpch: $(READY)
	@$(BIN)/python -m tests.tpch.rounds $(or $(ROUNDS),10)

bench: $(READY)
	@$(if $(filter $(NAME),$(BENCHES)),,echo "which one? make bench NAME=... with one of: $(BENCHES)" >&2; exit 2)
	@$(BIN)/python -m bench.$(NAME)

docs: $(READY)
	@$(BIN)/python tests/conformance.py

# Exact versions of everything, from a fresh environment: names and versions only, never an address or a path.
lock:
	@echo "resolving …"
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && \
	$(PYTHON) -m venv "$$dir" && \
	"$$dir/bin/pip" install -qq --upgrade pip && \
	"$$dir/bin/pip" install -qq --group dev '.[java]' && \
	{ echo "# Exact versions of everything; written by \`make lock\`."; \
	  "$$dir/bin/pip" freeze --exclude matview | grep -E '^[A-Za-z0-9._-]+==[^ /]+$$' | LC_ALL=C sort -f; } > "$$dir/lock" && \
	cat "$$dir/lock" > requirements.lock

clean:
	@rm -rf $(VENV) .cache .hypothesis .ruff_cache build dist
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(PACKAGES):
	@test -n "$(PYTHON)" || { echo "there is no Python >= 3.11 with venv here: make PYTHON=/path/to/python" >&2; exit 1; }
	@echo "making $(VENV) …"
	@rm -rf $(VENV)
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install --requirement requirements.lock
	@touch $@

$(READY): $(PACKAGES)
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@echo "making Spark start faster from now on …"
	@$(BIN)/python -m matview.spark.warm || true
	@rm -f $(VENV)/.ready-* && touch $@
