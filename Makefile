# One command for all checks. PYTHON names the interpreter of the environment to use.
PYTHON ?= python
SHELL := bash
.SHELLFLAGS := -o pipefail -c  # a failing check fails, also when its output is kept by tee

.PHONY: check check-all audit-claims check-gpu check-oldest foreign lint types test readme

check: lint types test

lint:
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .

types:
	$(PYTHON) -m mypy

test:
	$(PYTHON) -m pytest -n auto --maxprocesses 8 --dist loadfile

# What takes longer; its last output is kept in benchmarks/results/check-all.txt.
check-all: lint types check-oldest
	$(PYTHON) -m pip install --quiet -e '.[dev,ray]'
	$(PYTHON) -m pytest -n auto --maxprocesses 8 --dist loadfile -m "long or not long" 2>&1 | tee benchmarks/results/check-all.txt
	$(PYTHON) -m orchestrator redteam --device cpu 2>&1 | tee benchmarks/results/redteam-cpu.txt
	$(PYTHON) benchmarks/verdict_speed.py 2>&1 | tee benchmarks/results/verdict-speed-cpu.txt
	$(PYTHON) benchmarks/kill_verdicts.py 2>&1 | tee benchmarks/results/kill-verdicts-cpu.txt
	$(PYTHON) benchmarks/kill_batches.py 2>&1 | tee benchmarks/results/kill-batches.txt
	$(PYTHON) benchmarks/scale.py --out benchmarks/results/scale.md

# Kernels of public libraries before the policy and the judge. Only their text is read: installed apart, without what they need.
foreign:
	$(PYTHON) -m pip install --quiet --upgrade --no-deps --target build/foreign liger-kernel flag-gems
	$(PYTHON) benchmarks/foreign_kernels.py --site build/foreign 2>&1 | tee benchmarks/results/foreign-kernels.txt
	$(PYTHON) benchmarks/audit_libraries.py --site build/foreign 2>&1 | tee benchmarks/results/audit-libraries.md

# Recorded reviews of kernels with known faults: how many claims the judge confirms.
audit-claims:
	$(PYTHON) benchmarks/audit_claims.py 2>&1 | tee benchmarks/results/audit-claims.txt

# What needs a GPU: tests of what only a card shows, the red team and the speed of a verdict, then whether cheats gain, whether
# verdicts repeat, and how fast the kernels are.
check-gpu:
	ORCHESTRATOR_TEST_DEVICE=gpu $(PYTHON) -m pytest -m gpu tests/judge tests/test_export.py
	ORCHESTRATOR_TEST_DEVICE=gpu $(PYTHON) -m pytest tests/judge/test_large.py tests/test_draft.py
	$(PYTHON) benchmarks/verdict_speed.py 2>&1 | tee benchmarks/results/verdict-speed-h200.txt
	$(PYTHON) -m orchestrator redteam --device gpu --full --layer whole --jobs 8 2>&1 | tee benchmarks/results/redteam-h200.txt
	$(PYTHON) benchmarks/forging.py 2>&1 | tee benchmarks/results/forging-h200.txt
	$(PYTHON) benchmarks/stability.py 2>&1 | tee benchmarks/results/stability-h200.txt
	$(PYTHON) benchmarks/measure_ops.py 2>&1 | tee benchmarks/results/measure-ops-h200.txt

# What needs two of them.
check-two-gpus:
	$(PYTHON) benchmarks/two_cards.py 2>&1 | tee benchmarks/results/two-cards-h200.txt

# Puts the current --help into the README.
readme:
	$(PYTHON) tests/test_readme.py

# The tests with the oldest versions that pyproject.toml admits; downloads several gigabytes.
check-oldest:
	$(PYTHON) -m venv build/oldest
	build/oldest/bin/pip install --quiet -c constraints-oldest.txt -e '.[dev]'
	build/oldest/bin/python -m pytest -n auto --maxprocesses 8 --dist loadfile 2>&1 | tee benchmarks/results/check-oldest.txt
