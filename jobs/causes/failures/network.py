"""Processes that do not find, or lose, each other."""

from __future__ import annotations

from jobs.causes.failures.row import FailurePattern

NETWORK = (
    FailurePattern(
        "address_in_use",
        "Address already in use",
        "`EADDRINUSE`, `Address already in use`",
        "The port that the process wanted to listen on is taken on its node.",
        "Use the port that TrainHub sets (MASTER_PORT) instead of one in the script, and no second launcher "
        "in the command; "
        "then clone the run.",
        r"EADDRINUSE|[Aa]ddress already in use",
    ),
    FailurePattern(
        "unknown_interface",
        "No such network interface",
        "`Unable to find address for: …`, `Bootstrap : no socket interface found`",
        "The network interface that is named for the node does not exist there or has no address.",
        "Do not set GLOO_SOCKET_IFNAME or NCCL_SOCKET_IFNAME in the script; set the node's interface when "
        "it joins "
        "(`--interface`).",
        r"Unable to find (?:address|interface) for:|no socket interface found|Unable to resolve interface",
        link="node",
    ),
    FailurePattern(
        "nccl_not_built",
        "NCCL is not in this build",
        "`Distributed package doesn't have NCCL built in`",
        "The backend nccl was asked for, and this build of PyTorch has none: it is a CPU build.",
        "Use the backend gloo on CPU nodes, or an environment with a CUDA build of PyTorch.",
        r"doesn't have NCCL built in",
        link="environments",
    ),
    FailurePattern(
        "nccl_without_gpu",
        "NCCL without a GPU",
        "`ProcessGroupNCCL is only supported with GPUs`, `No backend type associated with device type cpu`",
        (
            "The backend nccl works between GPUs only, and this process has none (or gave it a tensor of "
            "the CPU)."
        ),
        "Use the backend gloo (or `cpu:gloo,cuda:nccl`), or ask for GPUs in the run's resources.",
        r"ProcessGroupNCCL is only supported with GPUs|No backend type associated with device type cpu",
    ),
    FailurePattern(
        "rendezvous_timed_out",
        "The ranks did not meet",
        "`Timed out after … waiting for clients`, `The client socket has timed out … trying to connect`, "
        "`RendezvousTimeoutError`",
        "A rank waited for the others to join the group, and they did not come, or could not reach it.",
        "Look at the logs of the other ranks first. If all run: see that nodes reach each other (firewall, "
        "the node's "
        "address and "
        "interface), and that the script uses MASTER_ADDR and MASTER_PORT as they are set.",
        r"waiting for clients\. \d+/\d+ clients joined|client socket has timed out after|client socket has "
        r"failed to connect"
        r"|RendezvousTimeoutError|RendezvousConnectionError",
        echo="waited for the others in vain",
        link="node",
    ),
    FailurePattern(
        "connect_failed",
        "The ranks cannot connect to each other",
        "`connectFullMesh failed`, `timed out connecting`, `Connect timeout`, `No route to host`, "
        "`socketStartConnect: Connect to … failed`",
        "The group was found, but ranks could not open connections to each other.",
        "See that the nodes reach each other on all ports (firewall), and that each names the right "
        "interface "
        "(GLOO_SOCKET_IFNAME, NCCL_SOCKET_IFNAME: `--interface` when the node joins).",
        r"connectFullMesh failed|timed out connecting|Connect timeout \[|No route to "
        r"host|socketStartConnect: Connect to"
        r"|ncclSocketConnect|SocketTimeout",
        echo="could not connect",
        link="node",
    ),
    FailurePattern(
        "peer_silent",
        "Another rank did not take part",
        "`Timed out waiting …ms for recv operation`, `failed to pass monitoredBarrier`, `Watchdog caught "
        "collective "
        "operation timeout`",
        "This rank waited for another one in a collective operation until its patience ended.",
        "Find the rank that did something else (another number of batches, a branch for one rank, an "
        "endless loop): "
        "its last line "
        "and its silence are in the lanes. Only where the work is truly uneven: a longer timeout in "
        "init_process_group.",
        r"Timed out waiting \d+ms for (?:recv|send) operation|failed to pass monitoredBarrier"
        r"|Watchdog caught collective operation timeout|collective operation timed? ?out|Ranks? .{0,80} "
        r"failed to (?:pass|call)"
        r"|DEADLINE_EXCEEDED.{0,80}[Bb]arrier",
        echo="waited for the others in vain",
    ),
    FailurePattern(
        "peer_lost",
        "Another rank was lost",
        "`Connection closed by peer`, `Connection reset by peer`, `Broken pipe`, `remote process exited or "
        "there was a "
        "network error`",
        "The connection to another rank broke; mostly because that rank or its node ended.",
        (
            "Look at the other ranks and their nodes: one of them ended without a word, or the "
            "network between "
            "them broke."
        ),
        r"Connection closed by (?:remote )?peer|Connection reset by peer|Broken pipe"
        r"|remote process exited or there was a network error"
        r"|ncclRemoteError|Socket closed|Software caused connection abort|recvValue failed|failed to recv, "
        r"got 0 bytes"
        r"|Connection refused, remote=|DistBackendError: .{0,200}(?:store->get|Socket "
        r"Timeout)|Socket Timeout",
        echo="lost its connection",
        link="node",
    ),
    FailurePattern(
        "framework_shut_down",
        "The framework was shut down",
        "`Horovod has been shut down`, `Collective ops is aborted by`, TensorFlow's `UnavailableError`, "
        "`AbortedError`, `CancelledError`",
        "The framework ended its work here because another task failed or left.",
        "Look at the other ranks and their nodes: one of them ended without a word.",
        r"Horovod has been shut down|HorovodInternalError|Collective ops is aborted "
        r"by|CollectiveReduce.{0,120}abort"
        r"|errors_impl\.(?:Unavailable|Aborted|Cancelled)Error|tasks are unhealthy|coordination service "
        r".{0,120}(?:error|lost)",
        echo="was shut down by its framework",
    ),
    FailurePattern(
        "aborted_with_others",
        "MPI ended all ranks",
        "`MPI_ABORT was invoked`, `mpirun noticed`, `prterun noticed`",
        "One rank ended with an error or called MPI_Abort, and mpirun ended the others.",
        "Look at the rank that ended first; if it called MPI_Abort, its own last lines say why.",
        r"MPI_ABORT was invoked|(?:mpirun|prterun|mpiexec) noticed|(?:mpirun|prterun) has exited due to",
        echo="was ended by MPI",
    ),
    FailurePattern(
        "interrupted",
        "Interrupted",
        "`KeyboardInterrupt`, `SignalException`, `SIGTERMException`",
        "The process was told to end, by a signal.",
        "Look who ended it: the other ranks, the run's events, an operator of the node.",
        r"^KeyboardInterrupt\b|SignalException\b|SIGTERMException\b|received signal (?:15|SIGTERM)",
        echo="was told to end",
    ),
    FailurePattern(
        "no_network",
        "No way to the network",
        (
            "`Name or service not known`, `Temporary failure in name resolution`, `We couldn't connect to "
            "'https://huggingface.co'`"
        ),
        "The script wanted something from the network that the node does not reach.",
        "Put data and models where the node finds them (in the source folder, on a shared disk, in a "
        "cache), or give the node a "
        "way out (HTTPS_PROXY).",
        r"Name or service not known|Temporary failure in name resolution|Network is unreachable|couldn't "
        r"connect to 'https?://"
        r"|LocalEntryNotFoundError|OfflineModeIsEnabled|Max retries exceeded with url",
        link="node",
    ),
)
