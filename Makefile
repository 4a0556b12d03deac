# make run    the app, in an environment of its own (.venv), made on the first call
# make test   linter, formatter and all tests; brings a Chromium where there is none
# make dev    as run, but picks up changed files
# make lint   linter and formatter, check only        make format   put them right
# make bench  the figures of the README, as JSON

PORT ?= 8501
VENV := .venv
# The first that runs and is new enough, unless you name one: make run PYTHON=/opt/python/bin/python3
PYTHONS := python3 python3.13 python3.12 python3.11
NEW := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(or $(shell for python in $(PYTHONS); do \
	$$python -c '$(NEW)' 2>/dev/null && echo $$python && break; done),python3)
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

.PHONY: run dev test lint format bench chromium clean

run: $(VENV)/.run
	$(BIN)/streamlit run app.py --server.port $(PORT)

dev: $(VENV)/.run
	$(BIN)/streamlit run app.py --server.port $(PORT) --server.fileWatcherType auto --server.runOnSave true

# Two tests at a time: three were no faster on two cores, and torch's threads would wait for each other.
test: lint chromium
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(VENV)/.test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.test chromium
	@$(BIN)/python -m tests.bench

# A Chromium for the browser tests: the machine's own, else Debian's package, else Playwright's.
chromium: $(VENV)/.test
	@sh tests/browser/chromium.sh $(BIN)/playwright

# The stamps: requirements are installed again only after their file has changed.
$(VENV)/.run: requirements.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed")'
	$(PYTHON) -m venv $(VENV)
	$(PIP) install -r requirements.txt
	@touch $@

$(VENV)/.test: $(VENV)/.run tests/requirements.txt
	$(PIP) install -r tests/requirements.txt
	@touch $@

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis
