# Everything below makes its own environment in .venv; `make demo` and `make test` need nothing set up before.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin

.PHONY: demo test lint types imports check real docs site dist bench fuzz mutants clean

demo: .venv/installed
	@BIN=$(BIN) sh sample_wheels/demo.sh

test: .venv/developing
	sh tests/tools.sh
	$(BIN)/pytest -q -n auto -m "not real"

# Real wheels from the package index: 1.3 GB, fetched once.
real: .venv/developing
	$(BIN)/python tests/real/fetch.py
	$(BIN)/pytest -q -n 2 -m real

check: lint types imports test

lint: .venv/developing
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/developing
	$(BIN)/mypy

imports: .venv/developing
	$(BIN)/lint-imports

docs: .venv/installed
	$(BIN)/python docs/make.py

# The pages as a site in site/; needs no network.
site: .venv/developing
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict -f docs/mkdocs/mkdocs.yml

# Both archives of the last commit, in dist/; how a release is made stands in docs/releasing.md.
dist: .venv/developing
	$(BIN)/python -m tests.dist dist

# Half an hour of mutated inputs; SEED=... for other ones.
fuzz: .venv/developing
	$(BIN)/python -m tests.fuzz --count 200000 --seed $(or $(SEED),1)

# 300 small changes of the rules and the loader, which the tests are to notice: about an hour; SEED=... for other ones.
mutants: .venv/developing
	$(BIN)/python -m tests.mutation --seed $(or $(SEED),1)

bench: .venv/developing
	$(BIN)/python benchmarks/bench.py --repair --folder
	$(BIN)/python benchmarks/growth.py

clean:
	rm -rf .venv build dist wheelhouse site

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/installed: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install -q --disable-pip-version-check -e .
	@touch $@

.venv/developing: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[test,dev,docs]'
	@touch $@ .venv/installed
