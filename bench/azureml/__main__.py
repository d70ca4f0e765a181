"""Public submit scripts of the SDK v1, unmodified, in a dry run: how many yield the RunSpec that they mean.

python -m bench.azureml --clones FOLDER [--python PYTHON] [--only TEXT] [--list]

FOLDER holds a git clone of each repository in `corpus.json` under the name OWNER+NAME. PYTHON has the
packages that the scripts import: numpy<2.3, pandas, matplotlib, seaborn, scikit-learn, scipy, requests,
pillow, ipython, tqdm, mlflow-skinny, papermill, scrapbook, torch, interpret-community, nltk, seqeval, lxml,
cytoolz, six, retrying, and setuptools<81, which has pkg_resources.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from bench.azureml import process
from bench.azureml.checkouts import Checkout
from bench.azureml.corpus import SCRIPT, CorpusFile, load_files
from bench.azureml.judgement import differences, load_expectations, read_dry_run
from bench.support.limits import Limits
from bench.support.stack import ROOT
from tests.azureml.stub_hub import RUN, StubHub, node, serving

MIN_SHARE = 0.6
MAX_SCRIPT_S = 120
_RUN_ID = re.compile(r"(?<=/)[0-9a-f]{32}(?=/)")
RIGHT, REFUSED, WRONG, OURS, UNREACHED = (
    "right",
    "refused in a sentence",
    "another spec",
    "exception of ours",
    "no submission",
)


class Verdict(NamedTuple):
    """`kind`: one of the words above; `cause`: why it is not right."""

    file: CorpusFile
    kind: str
    cause: str = ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clones", type=Path, required=True)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--only", default="", help="files whose key contains this text")
    parser.add_argument("--list", action="store_true", help="print each file with its verdict")
    options = parser.parse_args()
    files = [file for file in load_files() if options.only in file.key]
    files.sort(key=lambda file: file.kind != SCRIPT)  # what has a limit is known first
    verdicts: list[Verdict] = []
    with serving() as hub:
        equip(hub)
        for verdict in judge(files, options.clones, options.python, hub.url):
            verdicts.append(verdict)
            if options.list:
                print(f"{verdict.kind:<22} {verdict.file.key}\n{'':<22} {verdict.cause}", flush=True)
    return report(verdicts)


def equip(hub: StubHub) -> None:
    """Gives the hub one cluster, which all names of compute targets then mean, with enough nodes; and lets it
    know each run that a script opens before it submits one."""
    hub.clusters = [{"name": "gpu-cluster"}]
    hub.nodes = [node(f"n{number}", "gpu-cluster", 4) for number in range(16)]
    answer = hub.answer

    def answer_any_run(method: str, path: str, query: Mapping[str, str], body: bytes) -> tuple[int, Any]:
        if path.endswith(("/logs/", "/outputs/")):
            return 200, {path.split("/")[-2]: []}
        return answer(method, _RUN_ID.sub(RUN, path), query, body)

    hub.answer = answer_any_run  # type: ignore[method-assign]


def judge(files: Iterable[CorpusFile], clones: Path, python: str, hub: str) -> Iterable[Verdict]:
    expectations = load_expectations()
    with tempfile.TemporaryDirectory(prefix="th-bench-azureml-") as folder:
        checkouts: dict[tuple[str, str], Checkout] = {}
        for file in files:
            source = (file.repository, file.commit)
            if source not in checkouts:
                checkouts[source] = Checkout(clones, *source, Path(folder, str(len(checkouts))))
            script = checkouts[source].script(file)
            report, output = execute(script, python, hub, checkouts[source].root)
            yield verdict_of(file, report, output, expectations.get(file.key))


def execute(script: Path, python: str, hub: str, root: Path) -> tuple[dict[str, Any], str]:
    """Returns how the process of a script ended, and what it printed. `root`: of its repository, which some
    scripts import."""
    report, home = root.with_name("report.json"), root.with_name("home")
    report.unlink(missing_ok=True)
    home.mkdir(exist_ok=True)
    env = {
        "HOME": str(home),
        "PATH": os.environ["PATH"],
        "PYTHONPATH": f"{ROOT}{os.pathsep}{root}",
        "PYTHONIOENCODING": "utf-8",
        "MPLBACKEND": "Agg",
        "TRAINHUB_URL": hub,
        "TRAINHUB_TOKEN": "secret",
        "TRAINHUB_DRY_RUN": "1",
    }
    argv = [python, "-m", "bench.azureml.process", str(report), str(script)]
    try:
        done = subprocess.run(
            argv,
            cwd=script.parent,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=MAX_SCRIPT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"kind": process.FOREIGN, "type": "TimeoutExpired", "message": "", "line": 0}, ""
    if not report.exists():
        raise RuntimeError(f"{script}: {done.stderr[-1000:]}")
    outcome: dict[str, Any] = json.loads(report.read_text())
    return outcome, done.stdout


def verdict_of(
    file: CorpusFile, report: Mapping[str, Any], output: str, expected: Mapping[str, Any] | None
) -> Verdict:
    cause = f"{report.get('type', report['kind'])}: {report.get('message', '')}".replace("\n", " ")
    if report["kind"] == process.REFUSED:
        return Verdict(file, REFUSED, str(report["message"]).splitlines()[0])
    if report["kind"] == process.OURS:
        return Verdict(file, OURS, f"{cause} (line {report['line']}, {report['place']})")
    run = read_dry_run(output) if report["kind"] == process.EXIT else None
    if run is None:
        return Verdict(file, UNREACHED, cause)
    if expected is None:
        return Verdict(file, WRONG, "submits a script for which there is no expectation")
    wrong = differences(expected, run)
    return Verdict(file, WRONG, "; ".join(wrong)) if wrong else Verdict(file, RIGHT)


def report(verdicts: list[Verdict]) -> int:
    """Prints the shares and the causes. Returns the exit code."""
    scripts = [verdict for verdict in verdicts if verdict.file.kind == SCRIPT]
    for title, rows in (("submit scripts", scripts), ("all files that submit", verdicts)):
        counts = Counter(verdict.kind for verdict in rows)
        print(f"{title}: {len(rows)}")
        for kind in (RIGHT, REFUSED, UNREACHED, WRONG, OURS):
            print(f"  {kind:<22} {counts[kind]:4}  {100 * counts[kind] / max(1, len(rows)):5.1f} %")
    print("\n| files | verdict | cause |\n|---|---|---|")
    causes = Counter((verdict.kind, verdict.cause[:160]) for verdict in verdicts if verdict.kind != RIGHT)
    for (kind, cause), count in causes.most_common():
        print(f"| {count} | {kind} | {cause.replace('|', '/')} |")
    limits, right = Limits(), sum(verdict.kind == RIGHT for verdict in scripts)
    limits.at_least("submit scripts with the right spec", right / max(1, len(scripts)), MIN_SHARE)
    limits.at_most("exceptions of ours", sum(verdict.kind == OURS for verdict in verdicts), 0)
    return limits.exit_code()


if __name__ == "__main__":
    sys.exit(main())
