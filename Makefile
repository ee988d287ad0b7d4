# Every command that the project has. `make research` and `make test` set up what they need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
QUESTION ?= How long may a visitor borrow the harbour museum's telescope, and what does it cost?
OUT ?= out

.PHONY: research test format lint types imports tests bench evals cases docs lock clean

$(VENV)/.run: pyproject.toml requirements.lock
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --constraint requirements.lock --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.run
	$(PIP) install --requirement requirements.lock
	@touch $@

research: $(VENV)/.run  ## ask a question of the example corpus; leaves a report and a bundle in out/
	@mkdir -p $(OUT)
	@$(BIN)/leadline research "$(QUESTION)" --corpus examples/harbour-museum \
		--output $(OUT)/report.md --bundle $(OUT)/report.leadline
	@cat $(OUT)/report.md
	@$(BIN)/leadline verify $(OUT)/report.leadline

test: format lint types imports tests  ## every check there is

format: $(VENV)/.dev
	$(BIN)/ruff format --check .

lint: $(VENV)/.dev
	$(BIN)/ruff check .

types: $(VENV)/.dev
	$(BIN)/pyright

imports: $(VENV)/.dev
	$(BIN)/lint-imports --no-cache

tests: $(VENV)/.dev
	$(BIN)/pytest -n 2 --dist loadgroup

bench: $(VENV)/.dev  ## measure every bar beside its floor; writes bench/results.json
	$(BIN)/python -m bench

evals: $(VENV)/.dev  ## answer quality on public documents found by LEADLINE_DATA
	$(BIN)/python -m evals

cases: $(VENV)/.dev  ## CASES=DIR: which of the recorded failures have a test
	$(BIN)/python tests/list_cases.py $(CASES)

docs: $(VENV)/.dev  ## write docs/reference.md from the plugins and their configuration
	$(BIN)/python docs/build_reference.py

lock:  ## pin what a fresh environment resolves to
	$(PYTHON) -m venv $(VENV)/lock
	$(VENV)/lock/bin/python -m pip --disable-pip-version-check --quiet install uv
	$(VENV)/lock/bin/uv pip compile --quiet --universal --python-version 3.11 --no-header --no-annotate \
		--group dev pyproject.toml --output-file requirements.lock

clean:
	rm -rf $(VENV) $(OUT) .pytest_cache .ruff_cache
