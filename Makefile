# One virtual environment for every target, made on first use and again when the
# dependencies change. Debian packages are installed as root only; see tools/debian-packages.sh.

PYTHON ?= python3
VENV := .venv
READY := $(VENV)/.ready

TEST_PACKAGES := curl lftp tnftp vsftpd iproute2 libbpf1 libpam-wrapper
LAB_PACKAGES := mininet iputils-ping aria2
BPF_PACKAGES := clang llvm libbpf-dev
BENCH_PACKAGES := $(TEST_PACKAGES) globus-gridftp-server-progs globus-gass-copy-progs

# Tests wait for the network more than they compute, so more workers than small machines have cores.
WORKERS ?= 4
PYTEST_ARGS ?=
BENCH_ARGS ?=
KNOBS_ARGS ?=
LOAD_ARGS ?=
FUZZ_ARGS ?=
DEMO_ARGS ?=
FAULTS_ARGS ?=
LAB_ARGS ?= all --quick
LAB_RESULTS ?= lab-results

BPF_OUT ?= tuning/bpf/objects
BPF_OBJECTS := $(patsubst tuning/bpf/%.c,$(BPF_OUT)/%.bpf.o,$(wildcard tuning/bpf/*.c))

.PHONY: help demo lab test faults check bench knobs load fuzz bpf bpf-objects clean

help:
	@echo "make demo    send a file over 1 and over 8 connections; as root over an emulated satellite"
	@echo "make lab     measure the published figures again, as root        (LAB_ARGS='A2 B4')"
	@echo "make test    run the tests        (PYTEST_ARGS='-k striping')"
	@echo "make faults  500 transfers in which something goes wrong        (FAULTS_ARGS='--seed 7')"
	@echo "make check   formatter, linter, type checker"
	@echo "make bench   compare with GridFTP, lftp, curl and cp        (BENCH_ARGS='--repeat 5')"
	@echo "make knobs   the effect of each setting of the sockets, as root        (KNOBS_ARGS='--loss 0.001')"
	@echo "make load    a thousand sessions, 200 of them transferring        (LOAD_ARGS='--seconds 60')"
	@echo "make fuzz    try what no peer should send, with atheris        (FUZZ_ARGS='--seconds 300 records')"
	@echo "make bpf     compile the congestion-control programs, whose objects are committed"
	@echo "make clean   remove what the other targets made"

$(READY): setup.cfg pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed, this is " + sys.version.split()[0])'
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,lab]'
	@touch $@

demo: $(READY)
	@[ "$$(id -u)" -ne 0 ] || sh tools/debian-packages.sh mininet
	@$(VENV)/bin/python tools/demo.py $(DEMO_ARGS)

# The report is written whatever failed, and says so; the target fails then.
lab: $(READY)
	@sh tools/debian-packages.sh $(sort $(LAB_PACKAGES) $(BENCH_PACKAGES))
	@$(VENV)/bin/xftp-lab run $(LAB_ARGS) --results $(LAB_RESULTS); status=$$?; \
	[ $$status -eq 0 ] || [ $$status -eq 1 ] || exit $$status; \
	$(VENV)/bin/xftp-lab report --results $(LAB_RESULTS) && exit $$status

test: $(READY)
	@sh tools/debian-packages.sh $(TEST_PACKAGES) $(LAB_PACKAGES)
	$(VENV)/bin/python -m pytest -n $(WORKERS) $(PYTEST_ARGS)

faults: $(READY)
	@$(VENV)/bin/python -m tests.faults $(FAULTS_ARGS)

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

load: $(READY)
	@$(VENV)/bin/python -m bench.load $(LOAD_ARGS)

# The fuzzer is no small download, so only this target gets it.
$(VENV)/.fuzz-ready: $(READY)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[fuzz]'
	@touch $@

fuzz: $(VENV)/.fuzz-ready
	@$(VENV)/bin/python -m tests.fuzz $(FUZZ_ARGS)

# The objects fit every kernel that describes its types (BTF), so users need no compiler.
bpf:
	@sh tools/debian-packages.sh $(BPF_PACKAGES)
	@$(MAKE) --no-print-directory bpf-objects
	cd tuning/bpf && { echo "# $$(clang --version | head -n 1)"; sha256sum *.c *.h objects/*.bpf.o; } > objects/SHA256SUMS

bpf-objects: $(BPF_OBJECTS)

# SHA256SUMS tells a test, which may have no compiler, that the objects are of these sources.
# DWARF is left out; what the loader reads (.BTF, .BTF.ext) stays.
$(BPF_OUT)/%.bpf.o: tuning/bpf/%.c tuning/bpf/common.h tuning/bpf/standard.h
	@mkdir -p $(@D)
	clang -target bpf -O2 -g -ffile-prefix-map=$(CURDIR)=. -fdebug-compilation-dir=. -Wall -Wextra -Werror -Wno-unused-parameter -c $< -o $@
	llvm-strip --strip-debug $@

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
