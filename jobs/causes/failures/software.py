"""Known failures of environments that lack something, and crashes of native code."""

from __future__ import annotations

import signal

from jobs.causes.failures.row import FailurePattern

SOFTWARE = (
    FailurePattern(
        "missing_mpi",
        "MPI is missing",
        "`No module named 'mpi4py'`, `cannot load MPI library`, `libmpi.so… cannot open shared object file`",
        "The environment does not contain mpi4py, or the node has no MPI library.",
        (
            "Choose an environment that has mpi4py, such as TrainHub-PyTorch-2.13, and have Open MPI "
            "installed on every node (openmpi-bin)."
        ),
        r"No module named 'mpi4py'|cannot load MPI library|libmpi(?:_\w+)?\.so[\w.]*: cannot open "
        r"shared object"
        r"|mpi4py.{0,40}(?:not found|not installed)",
        link="environments",
    ),
    FailurePattern(
        "horovod_not_built",
        "Horovod is built without support for this framework",
        "`Extension horovod.… has not been built`",
        "Horovod was installed without support for this framework.",
        (
            "Make a version of the environment with the framework and horovod among its requirements: a node "
            "builds Horovod for exactly that framework. By hand, build it again with HOROVOD_WITH_PYTORCH=1 "
            "or HOROVOD_WITH_TENSORFLOW=1, without pip's cache."
        ),
        r"Extension horovod\.\w+ has not been built|[Hh]orovod.{0,60}reinstall Horovod with",
        link="environments",
    ),
    FailurePattern(
        "missing_module",
        "Missing module",
        "`ModuleNotFoundError: No module named …`, `python: No module named …`",
        "The environment does not contain the module {name}.",
        (
            "Add the package that has {name} to the environment. If the run uses an interpreter of the node, "
            "install it there, or choose an environment that has it. If the module is your own code, put it "
            "into the source folder beside the script."
        ),
        r"No module named '?([\w.]+)",
        link="environments",
    ),
    FailurePattern(
        "changed_module",
        "A package has a different version than the script expects",
        "`ImportError: cannot import name …`, `module … has no attribute …`",
        (
            "A package of the environment does not have {name}. The package is older or newer than the "
            "script expects, or a file of the source folder with the same name is imported instead."
        ),
        (
            "Choose an environment that has the version that the script needs, or change the script. Check "
            "that no file of the source folder has the name of a package."
        ),
        r"cannot import name '(\w+)'|^AttributeError: (?:partially initialized )?module '[\w.]+' has no "
        r"attribute "
        r"'(\w+)'",
        link="environments",
    ),
    FailurePattern(
        "unmatched_builds",
        "Packages are incompatible with each other",
        "`undefined symbol`, `operator torchvision::nms does not exist`, `numpy.dtype size changed`, "
        "`compiled using NumPy 1.x`",
        "A native package was built for another version of a library that it depends on.",
        (
            "Install matching versions together (torch with its torchvision, NumPy below 2 for older "
            "packages) in a new environment."
        ),
        r"undefined symbol:|operator torchvision::\w+ does not exist|numpy\.\w+ size changed|compiled using "
        r"NumPy 1\.x"
        r"|numpy\.core\.multiarray failed to import|version `GLIBC(?:XX)?_[\d.]+' not found",
        link="environments",
    ),
    FailurePattern(
        "missing_library",
        "Missing library",
        "`lib….so: cannot open shared object file`",
        "The system library {name} is not installed on the node.",
        (
            "Install the package that provides {name}: with pip in the environment if there is one, "
            "otherwise on the node."
        ),
        (
            r"(lib[\w+.-]+\.so[\w.]*): cannot open shared object file|Could not load dynamic library "
            r"'([\w.+-]+)'"
        ),
        link="environments",
    ),
    FailurePattern(
        "program_not_found",
        "No such program",
        "`trainhub: …: no such program on this node`, `not executable`",
        "The command's program is not installed on the node, or is not executable.",
        (
            "Correct the command, choose an environment that has the program, or have it installed on the "
            "node."
        ),
        r"^trainhub: .{1,200}: (?:no such program|no such file|not executable|not a program|the "
        r"interpreter that"
        r"|cannot be started)",
        link="environments",
    ),
    FailurePattern(
        "package_not_found",
        "A package is not available",
        "pip's `No matching distribution found`, `Could not find a version that satisfies`",
        "The index has no such package or version for this Python and machine.",
        (
            "Check on the node that pip reaches its index: its address is PIP_INDEX_URL in the agent's "
            "environment. Or choose a Python for which the index has the package."
        ),
        (
            r"No matching distribution found for (\S+)|Could not find a version that satisfies the "
            r"requirement (\S+)"
        ),
        link="environments",
    ),
    FailurePattern(
        "aborted_at_exit",
        "Aborted at exit",
        "`terminate called without an active exception`, SIGABRT",
        (
            "A native thread was still running when the process exited. The training itself may have been "
            "complete."
        ),
        (
            "Call torch.distributed.destroy_process_group() (or close loaders and writers) at the end of "
            "the script."
        ),
        r"terminate called without an active exception",
        echo="was aborted with the others",
    ),
    FailurePattern(
        "illegal_instruction",
        "Illegal instruction",
        "SIGILL, `Illegal instruction`",
        "A package was built for a newer processor than the node's.",
        (
            "Use a build of the package for this processor (from PyPI instead of one built by yourself), "
            "or another node."
        ),
        r"^Illegal instruction\b",
        signals=(signal.SIGILL,),
        link="environments",
    ),
    FailurePattern(
        "segmentation_fault",
        "A native library crashed",
        "SIGSEGV, `Fatal Python error: Segmentation fault`",
        (
            "A native library crashed, most often because packages were not built for each other. "
            'TensorFlow also crashes if TF_CONFIG has an empty "ps".'
        ),
        (
            "Create a new environment with matching versions. Set PYTHONFAULTHANDLER=1 to see where "
            "Python was."
        ),
        r"Fatal Python error: Segmentation fault|^Segmentation fault\b",
        signals=(signal.SIGSEGV,),
        link="environments",
    ),
    FailurePattern(
        "aborted",
        "A native library aborted",
        "SIGABRT, `terminate called after throwing`, `Fatal Python error: Aborted`",
        "Native code met a condition in which it could not continue, and ended the process.",
        (
            "The last output is quoted. If it does not explain the failure, set PYTHONFAULTHANDLER=1 to "
            "see where Python was."
        ),
        r"terminate called after throwing|Fatal Python error: Aborted",
        signals=(signal.SIGABRT,),
    ),
    FailurePattern(
        "arithmetic_fault",
        "A native library divided by zero",
        "SIGFPE",
        "Native code made an arithmetic error, such as an integer division by zero.",
        "The last output is quoted. Set PYTHONFAULTHANDLER=1 to see where Python was.",
        signals=(signal.SIGFPE,),
    ),
    FailurePattern(
        "ended_from_outside",
        "Ended by a signal from outside",
        "SIGTERM, SIGINT or SIGHUP that TrainHub did not send",
        (
            "Something other than TrainHub ended the process: an operator, a service manager, or the "
            "script itself."
        ),
        "Look at the system journal of the node at that time, then clone the run.",
        signals=(signal.SIGTERM, signal.SIGINT, signal.SIGHUP),
        link="node",
    ),
)
