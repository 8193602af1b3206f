# One virtual environment for every target, made on first use and again when the
# dependencies change. Debian packages are installed as root only; see tools/debian-packages.sh.

PYTHON ?= python3
VENV := .venv
READY := $(VENV)/.ready

TEST_PACKAGES := curl lftp tnftp vsftpd iproute2 libbpf1
BPF_PACKAGES := clang llvm libbpf-dev
BENCH_PACKAGES := $(TEST_PACKAGES) globus-gridftp-server-progs globus-gass-copy-progs

# Tests wait for the network more than they compute, so more workers than small machines have cores.
WORKERS ?= 4
PYTEST_ARGS ?=
BENCH_ARGS ?=
KNOBS_ARGS ?=
DEMO_ARGS ?=

BPF_OBJECTS := $(patsubst tuning/bpf/%.c,tuning/bpf/objects/%.bpf.o,$(wildcard tuning/bpf/*.c))

.PHONY: help demo test check bench knobs bpf clean

help:
	@echo "make demo    send a 256 MB file over 1 and over 8 connections, there and back"
	@echo "make test    run the tests        (PYTEST_ARGS='-k striping')"
	@echo "make check   formatter, linter, type checker"
	@echo "make bench   compare with GridFTP, lftp, curl and cp        (BENCH_ARGS='--repeat 5')"
	@echo "make knobs   the effect of each setting of the sockets, as root        (KNOBS_ARGS='--loss 0.001')"
	@echo "make bpf     compile the congestion-control programs, whose objects are committed"
	@echo "make clean   remove what the other targets made"

$(READY): setup.cfg pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed, this is " + sys.version.split()[0])'
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: $(READY)
	@$(VENV)/bin/python tools/demo.py $(DEMO_ARGS)

test: $(READY)
	@sh tools/debian-packages.sh $(TEST_PACKAGES)
	$(VENV)/bin/python -m pytest -n $(WORKERS) $(PYTEST_ARGS)

check: $(READY)
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/ruff check
	$(VENV)/bin/mypy

bench: $(READY)
	@sh tools/debian-packages.sh $(BENCH_PACKAGES)
	@$(VENV)/bin/python -m bench $(BENCH_ARGS)

knobs: $(READY)
	@sh tools/debian-packages.sh iproute2 libbpf1
	@$(VENV)/bin/python -m bench.knobs $(KNOBS_ARGS)

# The objects fit every kernel that describes its types (BTF), so users need no compiler.
bpf:
	@sh tools/debian-packages.sh $(BPF_PACKAGES)
	@$(MAKE) --no-print-directory $(BPF_OBJECTS)

# DWARF is left out; what the loader reads (.BTF, .BTF.ext) stays.
tuning/bpf/objects/%.bpf.o: tuning/bpf/%.c tuning/bpf/common.h tuning/bpf/standard.h
	@mkdir -p $(@D)
	clang -target bpf -O2 -g -Wall -Wextra -Werror -Wno-unused-parameter -c $< -o $@
	llvm-strip --strip-debug $@

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
