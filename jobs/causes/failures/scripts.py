"""Known failures of scripts, their arguments and their files, and of how frameworks were started."""

from __future__ import annotations

from jobs.causes.failures.row import FailurePattern

SCRIPTS = (
    FailurePattern(
        "export_refused",
        "The model was not exported",
        "`Export refused: …`, exit code 1",
        "The model cannot be exported to ONNX with these options.",
        (
            "Follow the message and export again from the version's page. docs/onnx.md describes what can "
            "be exported."
        ),
        r"^Export refused: ",
    ),
    FailurePattern(
        "local_rank_argument",
        "The script does not accept --local-rank",
        "`unrecognized arguments: --local-rank=…`, `--local_rank`",
        (
            "torch.distributed.launch adds --local-rank to the script's arguments, but the script does "
            "not accept it."
        ),
        (
            "Start with torchrun (or with --use-env) and read LOCAL_RANK from the environment, or let the "
            "script accept --local-rank and --local_rank."
        ),
        (
            r"(?:unrecognized arguments|not used by the HfArgumentParser|No such option|no such "
            r"option):.{0,200}--local[-_]rank"
        ),
    ),
    FailurePattern(
        "trainer_argument_gone",
        "An argument that Transformers no longer has",
        (
            "`TrainingArguments.__init__() got an unexpected keyword argument …`, `not used by the "
            "HfArgumentParser`"
        ),
        "The installed version of Transformers does not know an argument of the script.",
        (
            "For version 5, use use_cpu instead of no_cuda and eval_strategy instead of "
            "evaluation_strategy, and remove overwrite_output_dir and logging_dir. Or pin the version "
            "that the script was written for (transformers<5)."
        ),
        (
            r"TrainingArguments\.__init__\(\) got an unexpected keyword argument '\w+'|not used by the "
            r"HfArgumentParser"
        ),
        link="environments",
    ),
    FailurePattern(
        "bad_argument",
        "The script does not accept its arguments",
        "argparse's or click's `error:` after the usage, exit code 2",
        "The script rejected its arguments: {name}.",
        "Correct the arguments of the run, or let the script accept them.",
        (
            r"^\S{1,200}: error: (.{1,300})|^Error: ((?:No such option|Invalid value|Missing "
            r"(?:option|argument)).{0,300})"
        ),
    ),
    FailurePattern(
        "script_not_found",
        "No such script",
        "`python: can't open file …`",
        "The script {name} is not in the source folder.",
        (
            "Give the script's path relative to the source folder. The run's source shows which files it "
            "contains and which were ignored."
        ),
        r"can't open file '([^']{1,300})'",
    ),
    FailurePattern(
        "syntax_error",
        "Python cannot read the script",
        "`SyntaxError`, `IndentationError`, `TabError`",
        "The script is not valid Python, or not valid in this Python version.",
        (
            "Correct the quoted line, or choose an environment with the Python version that the script "
            "was written for."
        ),
        r"^(?:SyntaxError|IndentationError|TabError): ",
        link="environments",
    ),
    FailurePattern(
        "file_not_found",
        "No such file",
        "`FileNotFoundError`, `No such file or directory`",
        "The script tried to open {name}, which does not exist.",
        (
            "Paths are relative to the run's working folder, a copy of the source folder. Put the file "
            "into the source folder, or use the absolute path of a file that exists on every node."
        ),
        (
            r"No such file or directory: b?['\"]([^'\"]{1,300})|No such file or "
            r"directory$|^FileNotFoundError: "
            r"(?!.{0,200}: b?['\"])"
        ),
        unnamed="a file",
    ),
    FailurePattern(
        "permission_denied",
        "Permission denied",
        "`PermissionError`, `Permission denied`",
        "The account that runs the process is not allowed to use {name}.",
        "Write into the working folder (outputs/), or ask the owner to give that account the permission.",
        r"Permission denied: b?['\"]([^'\"]{1,300})|Permission "
        r"denied$|^PermissionError\b(?!.{0,200}: b?['\"])"
        r"|Read-only file system",
        unnamed="a file",
        link="node",
    ),
    FailurePattern(
        "process_counts",
        "Process counts do not match",
        "Lightning's `does not match the world size`, `devices` set differently from the launch",
        "The script expects a different number of processes than was started.",
        (
            "In the script, set devices to the run's number of processes per node, and num_nodes to its "
            "number of nodes."
        ),
        r"does not match the world size|You set `(?:devices|num_nodes|--nnodes)|world size .{0,60}does "
        r"not match"
        r"|You requested gpu: \[|You are trying to use \d+ (?:gpus|devices) but",
    ),
    FailurePattern(
        "equal_host_names",
        "Two nodes with the same host name",
        "DeepSpeed's `LOCAL_RANK (…) != OMPI_COMM_WORLD_LOCAL_RANK (…)`",
        (
            "DeepSpeed uses host names to count the processes of a node, and two nodes have the same host "
            "name."
        ),
        "Give each node a different host name, or let DeepSpeed take the ranks from the environment.",
        r"LOCAL_RANK \(\d+\) != OMPI_COMM_WORLD_LOCAL_RANK \(\d+\)",
        link="node",
    ),
    FailurePattern(
        "batch_size",
        "The batch size is not divisible by the process count",
        (
            "`train_batch_size is not equal to micro_batch_per_gpu * gradient_acc_step * world_size`, "
            "`must be "
            "divisible by`"
        ),
        "The batch size cannot be divided evenly among the processes.",
        (
            "Choose a batch size that is divisible by the number of processes, or change gradient "
            "accumulation."
        ),
        r"train_batch_size is not equal to|(?:[Bb]atch.{0,60}|number of "
        r"(?:processes|replicas|devices).{0,40})"
        r"(?:must|should|needs to) be (?:evenly )?divisible by",
    ),
    FailurePattern(
        "half_precision",
        "Half precision is not supported here",
        (
            "`Type fp16 is not supported on your device`, `not implemented for 'Half'`, `fp16 mixed "
            "precision "
            "requires a GPU`"
        ),
        "This device does not support 16-bit floats of this kind.",
        "Use bf16 or fp32 on CPU nodes, or a GPU that supports fp16.",
        (
            r"Type fp16 is not supported|not implemented for 'Half'|fp16 mixed precision "
            r"requires|bf16.{0,40}not supported"
        ),
    ),
    FailurePattern(
        "keras_per_replica",
        "Keras 3 under MultiWorkerMirroredStrategy",
        "`Attempt to convert a value (PerReplica:…`",
        "Keras 3's fit does not work under MultiWorkerMirroredStrategy.",
        "Add tf-keras to the environment and set TF_USE_LEGACY_KERAS=1, or write a custom training loop.",
        r"\(PerReplica:|distribute\.values\.PerReplica",
        link="environments",
    ),
    FailurePattern(
        "checkpoint_mismatch",
        "The checkpoint does not fit the model",
        "`size mismatch for …`, `Error(s) in loading state_dict`",
        "The checkpoint has other layers or shapes than the model into which it is loaded.",
        "Create the model with the configuration with which the checkpoint was written.",
        r"size mismatch for |Error\(s\) in loading state_dict",
    ),
    FailurePattern(
        "shape_mismatch",
        "Shapes do not match",
        "`shapes cannot be multiplied`, `must match the size of tensor`, `Incompatible shapes: …`",
        "A layer or an operation got a tensor of another shape than it expects.",
        (
            "Compare the shapes that the error names. The size of a layer's input must be that of the "
            "output before it, also for the last batch, which may be smaller."
        ),
        r"shapes cannot be multiplied|must match the size of tensor|Incompatible shapes:",
    ),
    FailurePattern(
        "mlflow_elsewhere",
        "The MLflow server does not know the run",
        "MLflow's `Run with id=… not found`, `Run '…' not found`",
        (
            "The MLflow server to which the script logs does not know the run. Most often the script sets "
            "another server, but continues the run of TrainHub, whose id is in MLFLOW_RUN_ID."
        ),
        (
            "Remove mlflow.set_tracking_uri to log to this run. Or set that server as MLFLOW_TRACKING_URI "
            "in the run's environment variables; that server then gets neither the id nor the token of "
            "this run."
        ),
        r"\bRun (?:with id=)?'?[0-9a-f]{32}'? not found",
    ),
)
