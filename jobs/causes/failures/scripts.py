"""What a script, its arguments and its files come to, and what frameworks say of how they were started."""

from __future__ import annotations

from jobs.causes.failures.row import FailurePattern

SCRIPTS = (
    FailurePattern(
        "export_refused",
        "The model was not exported",
        "`Export refused: …`, exit code 1",
        "The model cannot become ONNX as it was asked for.",
        (
            "Do what the sentence says and export again from the version's page; docs/onnx.md tells "
            "what can be "
            "exported."
        ),
        r"^Export refused: ",
    ),
    FailurePattern(
        "local_rank_argument",
        "The launcher's --local-rank",
        "`unrecognized arguments: --local-rank=…`, `--local_rank`",
        (
            "torch.distributed.launch adds --local-rank to the script's arguments, and the script does "
            "not take it."
        ),
        "Start with torchrun (or with --use-env) and read LOCAL_RANK from the environment; or let the "
        "script accept "
        "--local-rank and --local_rank.",
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
        "In version 5: use_cpu instead of no_cuda, eval_strategy instead of evaluation_strategy, and neither "
        "overwrite_output_dir "
        "nor logging_dir. Or pin the version that the script was written for (transformers<5).",
        (
            r"TrainingArguments\.__init__\(\) got an unexpected keyword argument '\w+'|not used by the "
            r"HfArgumentParser"
        ),
        link="environments",
    ),
    FailurePattern(
        "bad_argument",
        "Arguments that the script does not take",
        "argparse's or click's `error:` after the usage, exit code 2",
        "The script refused its arguments: {name}.",
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
            "Name the script relative to the source folder; the run's source shows which files it has "
            "and which "
            "were ignored."
        ),
        r"can't open file '([^']{1,300})'",
    ),
    FailurePattern(
        "syntax_error",
        "Python cannot read the script",
        "`SyntaxError`, `IndentationError`, `TabError`",
        "The script is not Python, or not for this version of it.",
        (
            "Correct the line that is quoted, or choose an environment with the Python version that "
            "the script "
            "was written for."
        ),
        r"^(?:SyntaxError|IndentationError|TabError): ",
        link="environments",
    ),
    FailurePattern(
        "file_not_found",
        "No such file",
        "`FileNotFoundError`, `No such file or directory`",
        "The script wanted {name}, which is not there.",
        "Paths are relative to the run's working folder, a copy of the source folder. Put the file there, "
        "or give the "
        "full path of "
        "one that every node has.",
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
        "The account that runs the process may not use {name}.",
        "Write into the working folder (outputs/), or have the owner give that account the right.",
        r"Permission denied: b?['\"]([^'\"]{1,300})|Permission "
        r"denied$|^PermissionError\b(?!.{0,200}: b?['\"])"
        r"|Read-only file system",
        unnamed="what it wanted",
        link="node",
    ),
    FailurePattern(
        "process_counts",
        "Process counts do not fit",
        "Lightning's `does not match the world size`, `devices` set differently from the launch",
        "The script counts its processes differently from how they were started.",
        "Set devices and num_nodes in the script to the processes per node and the nodes of the run.",
        r"does not match the world size|You set `(?:devices|num_nodes|--nnodes)|world size .{0,60}does "
        r"not match"
        r"|You requested gpu: \[|You are trying to use \d+ (?:gpus|devices) but",
    ),
    FailurePattern(
        "equal_host_names",
        "Two nodes with the same host name",
        "DeepSpeed's `LOCAL_RANK (…) != OMPI_COMM_WORLD_LOCAL_RANK (…)`",
        "DeepSpeed counts the processes of a node by host names, and two nodes have the same one.",
        "Give each node a host name of its own, or let DeepSpeed take the ranks from the environment.",
        r"LOCAL_RANK \(\d+\) != OMPI_COMM_WORLD_LOCAL_RANK \(\d+\)",
        link="node",
    ),
    FailurePattern(
        "batch_size",
        "Batch size does not fit the process count",
        (
            "`train_batch_size is not equal to micro_batch_per_gpu * gradient_acc_step * world_size`, "
            "`must be "
            "divisible by`"
        ),
        "The batch size cannot be shared out evenly among the processes.",
        "Choose a batch size that the number of processes divides, or change gradient accumulation.",
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
        "This device cannot calculate with 16-bit floats of that kind.",
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
        "shape_mismatch",
        "Shapes do not fit",
        "`size mismatch for …`, `Error(s) in loading state_dict`, `shapes cannot be multiplied`",
        "A checkpoint, a layer or a batch has another shape than what it meets.",
        (
            "Use the checkpoint with the configuration that it was made with; compare the shapes that the "
            "error names."
        ),
        r"size mismatch for |Error\(s\) in loading state_dict|shapes cannot be multiplied|must match the "
        r"size of tensor"
        r"|Incompatible shapes:",
    ),
    FailurePattern(
        "mlflow_elsewhere",
        "The run was not found where the script logs",
        "MLflow's `Run with id=… not found`, `Run '…' not found`",
        "The MLflow server that the script logs to does not know the run: mostly the script chooses a "
        "server of its own, "
        "and the run is this one, whose id is in MLFLOW_RUN_ID.",
        "Leave mlflow.set_tracking_uri out to log to this run; or give that server as MLFLOW_TRACKING_URI "
        "in the run's "
        "environment variables, and nothing of this run is given to it.",
        r"\bRun (?:with id=)?'?[0-9a-f]{32}'? not found",
    ),
)
