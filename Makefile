# make demo     draw private synthetic patterns, in out/demo/
# make test     run the quick tests: one example of everything, in about five minutes
# make test-all run all tests
# make lint     style, types and layers
# make docs     build the site, in out/docs/
# make mutants  plant faults one at a time, each of which tests must find
# make clean    remove everything made here
#
# Needs Python 3.11 or later: make demo PYTHON=python3.12 chooses one.

PYTHON ?= python3
VENV ?= .venv

bin := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo test test-all lint docs mutants dev clean

demo: $(VENV)/.installed
	$(bin)/python examples/demo.py

# The tests fill the cores with processes, so each keeps to one thread of linear algebra.
test: $(VENV)/.installed-test
	OMP_NUM_THREADS=1 $(bin)/python -m pytest -n auto --dist loadgroup -m "not slow" $(PYTEST_ARGS)

test-all: $(VENV)/.installed-test
	OMP_NUM_THREADS=1 $(bin)/python -m pytest -n auto --dist loadgroup $(PYTEST_ARGS)

lint: $(VENV)/.installed-lint
	$(bin)/ruff check .
	$(bin)/ruff format --check .
	$(bin)/mypy -p dpppsynth
	$(bin)/lint-imports

# Warnings are errors: a link that leads nowhere, a page that no list names, a docstring that does not parse.
docs: $(VENV)/.installed-docs
	OMP_NUM_THREADS=1 $(bin)/python -m sphinx --quiet --fail-on-warning --keep-going -d out/doctrees docs out/docs

mutants: $(VENV)/.installed-test
	OMP_NUM_THREADS=1 $(bin)/python benchmarks/mutants.py --out docs/results/audit.md

# Everything in one installation, for those who change the package.
dev: $(VENV)/.installed-dev

clean:
	rm -rf $(VENV) build dist dpppsynth.egg-info out .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "dpppsynth needs Python 3.11 or later; '$(PYTHON)' is not one. Name another: make demo PYTHON=python3.12" >&2; \
		exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(VENV)/.installed: pyproject.toml $(VENV)/.created
	$(bin)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/.installed-test $(VENV)/.installed-lint $(VENV)/.installed-docs: $(VENV)/.installed-%: pyproject.toml $(VENV)/.created
	$(bin)/python -m pip install --quiet --editable '.[$*]'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-dev: pyproject.toml $(VENV)/.created
	$(bin)/python -m pip install --quiet --editable '.[dev]'
	@touch $(VENV)/.installed $(VENV)/.installed-test $(VENV)/.installed-lint $(VENV)/.installed-docs $@
