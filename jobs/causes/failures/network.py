"""Known failures of processes that cannot reach or that lose each other."""

from __future__ import annotations

from jobs.causes.failures.row import FailurePattern

NETWORK = (
    FailurePattern(
        "address_in_use",
        "Address already in use",
        "`EADDRINUSE`, `Address already in use`",
        "The port on which the process tried to listen is already in use on its node.",
        (
            "Use the port that TrainHub sets (MASTER_PORT) instead of a port in the script, and do not "
            "start a second launcher in the command. Then clone the run."
        ),
        r"EADDRINUSE|[Aa]ddress already in use",
    ),
    FailurePattern(
        "unknown_interface",
        "No such network interface",
        "`Unable to find address for: …`, `Bootstrap : no socket interface found`",
        "The network interface that is set for the node does not exist there or has no address.",
        (
            "Do not set GLOO_SOCKET_IFNAME or NCCL_SOCKET_IFNAME in the script. Set the node's interface "
            "when it joins (`--interface`)."
        ),
        r"Unable to find (?:address|interface) for:|no socket interface found|Unable to resolve interface",
        link="node",
    ),
    FailurePattern(
        "nccl_not_built",
        "PyTorch is built without NCCL",
        "`Distributed package doesn't have NCCL built in`",
        (
            "The script requested the backend nccl, but this build of PyTorch does not contain it: it is "
            "a CPU build."
        ),
        "Use the backend gloo on CPU nodes, or an environment with a CUDA build of PyTorch.",
        r"doesn't have NCCL built in",
        link="environments",
    ),
    FailurePattern(
        "nccl_without_gpu",
        "NCCL without a GPU",
        "`ProcessGroupNCCL is only supported with GPUs`, `No backend type associated with device type cpu`",
        (
            "The backend nccl works only between GPUs, and this process has none, or passed a CPU tensor "
            "to it."
        ),
        "Use the backend gloo (or `cpu:gloo,cuda:nccl`), or request GPUs in the run's resources.",
        r"ProcessGroupNCCL is only supported with GPUs|No backend type associated with device type cpu",
    ),
    FailurePattern(
        "duplicate_gpu",
        "Two ranks on one GPU",
        "`ncclInvalidUsage`, `Duplicate GPU detected : rank 1 and rank 0 both on CUDA device …`",
        "NCCL lets only one rank use a GPU, and several ranks of a node have chosen the same one.",
        (
            'Let each rank use its own GPU: call torch.cuda.set_device(int(os.environ["LOCAL_RANK"])) '
            "before init_process_group, and put model and data there and not on cuda:0."
        ),
        r"Duplicate GPU detected",
    ),
    FailurePattern(
        "rendezvous_timed_out",
        "The ranks did not find each other",
        "`Timed out after … waiting for clients`, `The client socket has timed out … trying to connect`, "
        "`RendezvousTimeoutError`",
        (
            "A rank waited for the others to join the process group, but they did not start or could not "
            "reach it."
        ),
        (
            "Look at the logs of the other ranks first. If all of them run, check that the nodes can "
            "reach each other (firewall, the node's address and interface), and that the script uses "
            "MASTER_ADDR and MASTER_PORT unchanged."
        ),
        r"waiting for clients\. \d+/\d+ clients joined|client socket has timed out after|client socket has "
        r"failed to connect"
        r"|RendezvousTimeoutError|RendezvousConnectionError",
        echo="timed out waiting for the others",
        link="node",
    ),
    FailurePattern(
        "connect_failed",
        "The ranks cannot connect to each other",
        "`connectFullMesh failed`, `timed out connecting`, `Connect timeout`, `No route to host`, "
        "`socketStartConnect: Connect to … failed`",
        "The ranks found each other, but could not open connections to each other.",
        (
            "Check that the nodes can reach each other on all ports (firewall), and that each uses the "
            "right interface (GLOO_SOCKET_IFNAME, NCCL_SOCKET_IFNAME; set with `--interface` when the "
            "node joins)."
        ),
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
        "This rank waited for another one in a collective operation until the timeout.",
        (
            "Find the rank that behaved differently (another number of batches, a branch for one rank, an "
            "endless loop): the Logs tab shows the last line and the silence of every rank. Set a "
            "longer timeout in init_process_group only if the work is really uneven."
        ),
        r"Timed out waiting \d+ms for (?:recv|send) operation|failed to pass monitoredBarrier"
        r"|Watchdog caught collective operation timeout|collective operation timed? ?out|Ranks? .{0,80} "
        r"failed to (?:pass|call)"
        r"|DEADLINE_EXCEEDED.{0,80}[Bb]arrier",
        echo="timed out waiting for the others",
    ),
    FailurePattern(
        "peer_lost",
        "Another rank was lost",
        "`Connection closed by peer`, `Connection reset by peer`, `Broken pipe`, `remote process exited or "
        "there was a "
        "network error`",
        "The connection to another rank was lost, most often because that rank or its node ended.",
        (
            "Look at the other ranks and their nodes: one of them ended without a message, or the network "
            "between them failed."
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
        "The framework stopped this process because another task failed or left.",
        "Look at the other ranks and their nodes: one of them ended without a message.",
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
        "One rank ended with an error or called MPI_Abort, so mpirun ended the others.",
        "Look at the rank that ended first. If it called MPI_Abort, its own last lines say why.",
        r"MPI_ABORT was invoked|(?:mpirun|prterun|mpiexec) noticed|(?:mpirun|prterun) has exited due to",
        echo="was ended by MPI",
    ),
    FailurePattern(
        "interrupted",
        "Interrupted",
        "`KeyboardInterrupt`, `SignalException`, `SIGTERMException`",
        "The process received a signal to stop.",
        (
            "Find out who ended it: the other ranks, a user (see the run's events), or an operator of the "
            "node."
        ),
        r"^KeyboardInterrupt\b|SignalException\b|SIGTERMException\b|received signal (?:15|SIGTERM)",
        echo="received a signal to stop",
    ),
    FailurePattern(
        "no_network",
        "No access to the network",
        (
            "`Name or service not known`, `Temporary failure in name resolution`, `We couldn't connect to "
            "'https://huggingface.co'`"
        ),
        "The script tried to reach a network address that the node cannot reach.",
        (
            "Put data and models where the node can read them (in the source folder, on a shared disk, in "
            "a cache), or give the node access through a proxy (HTTPS_PROXY)."
        ),
        r"Name or service not known|Temporary failure in name resolution|Network is unreachable|couldn't "
        r"connect to 'https?://"
        r"|LocalEntryNotFoundError|OfflineModeIsEnabled|Max retries exceeded with url",
        link="node",
    ),
    # After "no network": libraries raise ConnectionError for addresses outside, too, and say so.
    FailurePattern(
        "connection_lost",
        "A connection was closed",
        "`ConnectionError`, `ConnectionResetError`, `BrokenPipeError` with an unknown message",
        "The other side of a connection closed it, most often because that process had ended.",
        "Look at the other ranks and their nodes: if one of them ended earlier, its log says why.",
        r"^(?:[\w.]+\.)?Connection(?:Reset|Aborted)?Error\b|^(?:[\w.]+\.)?BrokenPipeError\b",
        echo="lost its connection",
    ),
)
