"""`python -I -S bootstrap.py ROLE FOLDER`: the processes between the agent and training. ROLE: child, rank,
rsh, trial, container-trial, image-build, data, probe, store-files, peers or contents.

-I isolates them from everything that a user or an operator installs. -S omits `site`, which would take
longer than all their own work. So neither site-packages nor this package is on the path at first. Each
role imports only what it needs: a run on one node without MPI waits for none of the modules of the other
roles."""
# ruff: noqa: E402

from __future__ import annotations

import sys

sys.path.append(__file__.rpartition("/")[0].rpartition("/")[0])
ROLE, FOLDER = sys.argv[1:3]

if ROLE == "rank":
    from trainhub_node.supervisor import rank

    rank.run_under_mpirun(FOLDER)

if ROLE == "rsh":
    from trainhub_node.supervisor import rsh

    rsh.run(FOLDER, sys.argv[3:])

if ROLE == "trial":
    from trainhub_node.isolation import trial

    trial.run(FOLDER, int(sys.argv[3]))

if ROLE == "container-trial":
    from trainhub_node.containers import trial as container_trial

    container_trial.run(FOLDER)

if ROLE == "image-build":
    from trainhub_node.environments.making import build_namespaces

    build_namespaces.run(FOLDER)

if ROLE == "data":
    # The library that downloads is where the agent is installed.
    sys.path.append(FOLDER)
    from trainhub_node.data import fetch

    fetch.run()

if ROLE == "probe":
    sys.path.append(FOLDER)
    from trainhub_node.probing import store_reader

    store_reader.run()

if ROLE == "store-files":
    sys.path.append(FOLDER)
    from trainhub_node.stores import file_process

    file_process.run()

if ROLE == "peers":
    from trainhub_node.data.peers import server

    server.run(FOLDER)

if ROLE == "contents":
    from trainhub_node.data.contents import naming

    naming.run(FOLDER)

from trainhub_node.supervisor import child

GANG = child.prepare_gang(FOLDER)
IS_PROBE = bool(GANG.order.get("probe"))
if GANG.order.get("mounts"):
    from trainhub_node.data.shares import mounting

    GANG.run_step(mounting.mount_inputs)
if IS_PROBE:
    from trainhub_node.probing import probe

    GANG.run_step(probe.carry_out)
if (GANG.order.get("inputs") or GANG.order.get("mounts")) and not IS_PROBE:
    from trainhub_node.data import input_folders

    GANG.run_step(input_folders.check_inputs)
if GANG.order.get("lists"):
    from trainhub_node.data.comparison import listed_folders

    GANG.run_step(listed_folders.check_lists)
if GANG.order.get("downloads") and not IS_PROBE:
    from trainhub_node.data import download

    GANG.run_step(download.download_inputs)
if GANG.order.get("references"):
    from trainhub_node.references import references

    GANG.run_step(references.prepare_references)
if GANG.order.get("make"):
    from trainhub_node.environments.making import making

    GANG.run_step(making.carry_out)
elif GANG.uses_image:
    from trainhub_node.supervisor import container

    GANG.run_step(container.start)
elif not GANG.python and not IS_PROBE:
    from trainhub_node.environments import build

    GANG.run_step(build.build)
if GANG.order.get("kind", "run") != "run":
    # An order to build or to probe: that was all of it.
    GANG.run_step(child.enter_running)
else:
    if GANG.terms.get("isolation") and not GANG.uses_image:
        from trainhub_node.supervisor import separation

        GANG.run_step(separation.separate)
    if GANG.is_multi_node:
        from trainhub_node.supervisor import readiness

        GANG.run_step(readiness.wait_until_ready)
    if GANG.terms.get("cgroup") or GANG.order.get("memory_bytes") or GANG.order.get("cpus"):
        from trainhub_node.supervisor import limits

        GANG.run_step(limits.limit)
    if GANG.uses_mpi:
        from trainhub_node.supervisor import mpi_launcher

        GANG.run_step(mpi_launcher.start)
    else:
        GANG.run_step(child.start_ranks)

# The ranks are running now. Imported only here, so that they need not wait for it.
from trainhub_node.supervisor import supervise

supervise.supervise(GANG)
