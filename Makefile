# `make up` runs TrainHub; `make demo` shows it with simulated GPUs; `make test` runs everything that must hold.
PY := .venv/bin/python
.PHONY: up demo release image sdk-wheels test system-packages compiled-tests coverage test-quick test-cgroup2 test-nfs test-slurm test-postgresql test-curated test-long test-chaos lint bench fuzz lock audit sbom
.DEFAULT_GOAL := up
# Where it is set, every process of the tests would compile a thousand test files again.
export PYTHONDONTWRITEBYTECODE :=

up: .venv/ready
	@exec $(PY) manage.py up

demo: .venv/ready
	@exec $(PY) manage.py up --demo

# Each keeps one processor busy, so they run side by side.
test:
	@$(MAKE) --no-print-directory --jobs=2 lint system-packages compiled-tests
	@exec $(PY) -m pytest -q -n 3 --dist loadfile --no-loadscope-reorder --reruns 1 $(PYTEST)

system-packages:
	@.ci/system-packages

# Every process of the tests imports all of their files. What one has compiled before, the others need not. What cannot
# be imported is said by the run itself.
compiled-tests: .venv/ready-dev
	@$(PY) -m pytest -q --collect-only $(PYTEST) >/dev/null 2>&1 || true

# Everything, and which lines of the product it reaches. Recording takes a quarter more CPU time.
coverage:
	@TRAINHUB_TEST_COVERAGE=build/coverage $(MAKE) --no-print-directory test

test-quick: .venv/ready-dev
	@exec $(PY) -m pytest -q -m "not slow and not mpi and not frameworks and not browser and not hosts and not gpu" $(PYTEST)

# In a virtual machine whose control groups are version 2 only, first without and then with systemd. An emulated one takes
# half an hour, so `make test` leaves it out.
IN_MACHINE = PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 $(PY) -B -m pytest -v -c .ci/virtual-machine.ini --rootdir=.
test-cgroup2: .venv/ready-dev
	@.ci/virtual-machine --seconds 3600 env $(IN_MACHINE) $(or $(PYTEST),tests/node/test_cgroup_place.py tests/node/supervisor/test_limits.py)
	@$(if $(PYTEST),,.ci/virtual-machine --systemd --seconds 3600 env $(IN_MACHINE) tests/node/test_systemd_unit.py)

# NFS shares, in such a machine with a server of its own: most kernels that tests run on have neither client nor server.
test-nfs: .venv/ready-dev
	@.ci/virtual-machine --seconds 3600 env $(IN_MACHINE) $(or $(PYTEST),tests/node/data/shares/test_nfs.py)

# A real Slurm on machines of its own, a quarter of an hour: `make test` leaves out what waits for its timeouts and states.
test-slurm: .venv/ready-dev
	@.ci/system-packages
	@TRAINHUB_TEST_LONG=1 exec $(PY) -m pytest -q -m slurm $(or $(PYTEST),tests/slurm)

# All unit tests on PostgreSQL, a quarter of an hour. `make test` runs those there in which the database matters most.
test-postgresql: .venv/ready-dev
	@.ci/system-packages
	@TRAINHUB_TEST_POSTGRESQL=all exec $(PY) -m pytest -q -n 2 --dist load tests/platform/test_postgresql.py tests/backup/test_on_postgresql.py $(PYTEST)

# Every curated environment: GBs to download, and Horovod to compile. `make test` leaves most of them out.
test-curated: .venv/ready-dev
	@.ci/system-packages
	@TRAINHUB_TEST_CURATED=1 exec $(PY) -m pytest -v tests/examples/test_every_curated.py $(PYTEST)

# What tries once more, in another framework, engine or size, what `make test` tries.
test-long: .venv/ready-dev
	@.ci/system-packages
	@TRAINHUB_TEST_LONG=1 exec $(PY) -m pytest -q -n 2 --dist loadfile --no-loadscope-reorder -m long $(PYTEST)

# A whole installation under random troubles, for SECONDS (default 1800). SEED repeats the troubles of an earlier run.
test-chaos: .venv/ready-dev
	@.ci/system-packages
	@TRAINHUB_TEST_LONG=1 TRAINHUB_CHAOS_SECONDS=$(or $(SECONDS),1800) TRAINHUB_CHAOS_SEED=$(or $(SEED),0) exec $(PY) -m pytest -q -o log_cli=true -m hosts tests/chaos $(PYTEST)

lint: .venv/ready-dev
	@$(PY) -m ruff check --quiet .
	@$(PY) -m ruff format --check --quiet . || { echo "Python files are formatted differently: run $(PY) -m ruff format ."; exit 1; }
	@$(PY) -m djhtml --check --tabwidth 2 templates 2>/dev/null || { echo "Templates are indented differently: run $(PY) -m djhtml --tabwidth 2 templates."; exit 1; }
	@$(PY) -m mypy --no-error-summary .
	@DATABASE_URL=sqlite://:memory: $(PY) manage.py makemigrations --check --dry-run >/dev/null || { echo "Models and migrations differ: run manage.py makemigrations."; exit 1; }

# Random input for every parser, for long. What else sends random requests (the OpenAPI document's) carries the marker too.
fuzz: .venv/ready-dev
	@TRAINHUB_FUZZ_PROFILE=long $(PY) -m pytest -q -m fuzz $(PYTEST)

bench: .venv/ready-dev
	@for name in idle cli pages launch_overhead containers log_latency log_throughput log_search log_shipping sockets telemetry_sockets slow_clients sign_in_flood ingest sampler charts runs large_history many_workspaces artifacts sdk tracking run_cost scale many_nodes queue servers backup database_move object_store retention; do echo "== $$name"; $(PY) -m bench.$$name || exit 1; done

# What a release is made of: exact versions of everything, with hashes, for all platforms. No address of a package index gets in.
# Of the command line one version each, for all Pythons and systems, so without markers: a hub serves them to any machine.
lock: .venv/ready-dev
	@.venv/bin/uv pip compile --quiet --no-config --universal --python-version 3.11 --upgrade --generate-hashes --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" --output-file requirements.lock requirements.txt
	@.venv/bin/uv pip compile --quiet --no-config --universal --python-version 3.8 --fork-strategy fewest --upgrade --only-binary :all: --generate-hashes --no-annotate --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" --output-file packaging/sdk/requirements.txt packaging/sdk/pyproject.toml
	@sed -i -E 's/ ; [^\\]*/ /' packaging/sdk/requirements.txt

audit: .venv/ready-dev
	@.venv/bin/pip-audit --require-hashes --disable-pip --requirement requirements.lock

sbom: .venv/ready-dev
	@mkdir -p build
	@.venv/bin/cyclonedx-py requirements requirements.lock --short-PURLs --output-reproducible --output-format JSON --output-file build/sbom.json
	@echo "build/sbom.json tells what a release is made of."

# All that is given to others, in dist, with the digests of its files; KEY=FILE is a private key of OpenSSH that signs them.
release: .venv/ready
	@$(PY) packaging/make_release.py dist $(if $(KEY),--key $(KEY))

# The image of the hub, from dist; BASE is another base image than that of the Containerfile.
image: release
	@podman build --format docker --tag trainhub-hub:$$($(PY) -c 'import trainhub; print(trainhub.__version__)') \
		$(if $(BASE),--build-arg BASE=$(BASE)) --file packaging/container/Containerfile dist

.venv/bin/python:
	@python=$$(.ci/find-python $(if $(filter up,$(or $(MAKECMDGOALS),up)),--for-all)) && "$$python" -m venv .venv

# What the command line of TrainHub needs, for machines without a package index: the hub serves these wheels at /sdk/. A
# hub works without them and its pages say that they are missing, so a download that fails is tried again next time.
sdk-wheels:
	@$(MAKE) --silent --no-print-directory --what-if=packaging/sdk/requirements.txt .venv/sdk-wheels

.venv/sdk-wheels: packaging/sdk/requirements.txt | .venv/bin/python
	@rm -rf $@.part
	@if $(PY) -m pip download --quiet --disable-pip-version-check --no-input --retries 1 --no-deps --require-hashes --only-binary :all: --dest $@.part --requirement $<; \
	then rm -rf $@ && mv $@.part $@ && touch $@; \
	else rm -rf $@.part; echo "The packages that the command line needs could not be downloaded, so this hub will serve it without them. Try again: make sdk-wheels" >&2; fi

# Accounts that may not write here run from it, so its modules are compiled now.
.venv/ready: requirements.txt | .venv/bin/python .venv/sdk-wheels
	@echo "Installing what TrainHub needs into .venv ..."
	@grep -E '^(uv|packaging)>' requirements.txt | xargs $(PY) -m pip install --quiet --disable-pip-version-check
	@$(PY) .ci/uv pip install --compile-bytecode --python $(PY) -r requirements.txt
	@touch $@

.venv/ready-dev: requirements-dev.txt .venv/ready
	@echo "Installing what the tests need into .venv ..."
	@$(PY) .ci/uv pip install --python $(PY) -r requirements-dev.txt
	@touch $@
