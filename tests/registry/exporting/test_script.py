"""The script that exports, as a node runs it: what it takes, what it compares, what it refuses and with which
words."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.registry.exporting.standalone import NET, Ended, Standalone, Warm
from trainhub import certificates

pytestmark = [pytest.mark.slow, pytest.mark.frameworks]
WEIGHTS = "import torch, net; torch.save(net.make().state_dict(), 'model.pt')"

FLOW = """
from torch import nn, Tensor


class Flow(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if bool(x.sum() > 0):
            return x * 2
        return x - 1
"""


@pytest.fixture(scope="module")
def warm(frameworks_python: str) -> Iterator[Warm]:
    made = Warm(frameworks_python)
    yield made
    made.close()


@pytest.fixture
def alone(tmp_path: Path, warm: Warm) -> Standalone:
    made = Standalone(tmp_path, warm)
    made.source(net=NET)
    return made


def exported(ended: Ended) -> Ended:
    assert ended.code == 0, ended.log
    assert all(found["within"] for found in ended.report["differences"]), ended.report
    assert (ended.folder / "outputs" / "onnx" / "model.onnx").stat().st_size > 0
    return ended


def refused(ended: Ended) -> str:
    assert ended.code == 1, ended.log
    assert "Traceback" not in ended.log
    assert ended.refusal in ended.log
    return ended.refusal


class TestTakes:
    def test_weights_with_the_function_that_makes_the_module(self, alone: Standalone) -> None:
        alone.saved(WEIGHTS)
        report = exported(alone.export("model.pt", factory="net:make")).report
        assert (report["kind"], report["exporter"], report["opset"]) == ("state_dict", "torch.export", 20)
        assert report["inputs"] == [{"name": "x", "dtype": "float", "shape": ["batch", 4]}]
        assert report["batches"] == [
            "example",
            "random, batch = 2",
            "random, batch = 3",
            "random, batch = 7",
            "random, batch = 1",
        ]
        assert report["differences"][0]["max_absolute"] < 1e-5
        assert set(report["versions"]) == {"torch", "onnx", "onnxscript", "onnxruntime", "python"}

    def test_files_of_a_hub_with_an_authority_of_its_own(self, alone: Standalone, tmp_path: Path) -> None:
        certificates.ensure(tmp_path / "tls", ["127.0.0.1"])
        alone.saved(WEIGHTS)
        exported(alone.export("model.pt", tls=tmp_path / "tls", factory="net:make"))

    def test_weights_saved_under_distributed_training(self, alone: Standalone) -> None:
        alone.saved(
            "import torch, net\n"
            "torch.save({'epoch': 3, 'state_dict': {'module.' + k: v for k, v in "
            "net.make().state_dict().items()}}, 'last.ckpt')"
        )
        exported(alone.export("last.ckpt", factory="net:make"))

    def test_a_pickled_module_whose_class_the_source_has(self, alone: Standalone) -> None:
        alone.saved("import torch, net; torch.save(net.make(), 'model.pt')")
        ended = exported(
            alone.export("model.pt", inputs=[{"name": "x", "shape": [1, 4], "dtype": "float32"}])
        )
        assert ended.report["kind"] == "module"
        assert "loading it runs code of its own" in ended.log

    def test_a_program_of_torch_export_with_its_own_example_and_axes(self, alone: Standalone) -> None:
        alone.saved(
            "import torch, net\n"
            "shapes = ({0: torch.export.Dim('b')},)\n"
            "program = torch.export.export(net.make().eval(), (torch.randn(2, 4),), dynamic_shapes=shapes)\n"
            "torch.export.save(program, 'model.pt2')"
        )
        report = exported(alone.export("model.pt2", inputs=[], dynamic={"": {"0": "items"}})).report
        assert (report["kind"], report["inputs"][0]["shape"]) == ("program", ["items", 4])
        assert len(report["batches"]) == 5

    def test_torchscript_which_keeps_a_branch_that_depends_on_the_values(self, alone: Standalone) -> None:
        alone.source(flow=FLOW)
        alone.saved("import torch, flow; torch.jit.save(torch.jit.script(flow.Flow()), 'model.pt')")
        report = exported(alone.export("model.pt")).report
        assert (report["kind"], report["exporter"]) == ("torchscript", "torch.jit")
        assert report["inputs"][0]["shape"] == ["batch", 4]

    def test_a_model_as_mlflow_keeps_it_with_the_code_beside_it(self, alone: Standalone) -> None:
        alone.saved(
            "import torch, pathlib, shutil, net\n"
            "for name in ('logged/data', 'logged/code'): pathlib.Path(name).mkdir(parents=True)\n"
            "shutil.move(net.__file__, 'logged/code/net.py')\n"
            "torch.save(net.make(), 'logged/data/model.pth')\n"
            "pathlib.Path('logged/MLmodel').write_text('flavors: {pytorch: {code: code}}')"
        )
        exported(alone.export("logged/MLmodel"))

    def test_an_example_out_of_a_file_by_the_names_of_the_parameters(self, alone: Standalone) -> None:
        alone.source(
            pair=(
                "from torch import nn\n"
                "class Pair(nn.Module):\n"
                "    def forward(self, left, right):\n"
                "        return {'sum': left + right.sum(1, keepdim=True), 'product': left * 2}\n"
            )
        )
        alone.saved("import torch, pair; torch.save(pair.Pair(), 'pair.pt')")
        (alone.work / "example").mkdir()
        program = (
            "import numpy; numpy.savez('e.npz', right=numpy.ones((2, 5), 'f'), left=numpy.ones((2, 3), 'f'))"
        )
        alone.saved(program)
        (alone.files / "e.npz").rename(alone.work / "example" / "e.npz")
        report = exported(alone.export("pair.pt", inputs=[], example="e.npz")).report
        assert {item["name"] for item in report["inputs"]} == {"left", "right"}
        assert len(report["differences"]) == 2


class TestRefuses:
    def test_weights_without_a_function(self, alone: Standalone) -> None:
        alone.saved(WEIGHTS)
        ended = alone.export("model.pt")
        assert "holds only weights (a state dict of 4 tensors); name the function" in refused(ended)
        assert ended.report["field"] == "factory"

    def test_a_function_whose_module_does_not_fit(self, alone: Standalone) -> None:
        alone.saved("import torch; torch.save(torch.nn.Linear(4, 3).state_dict(), 'model.pt')")
        assert "do not fit the module of net:make: it also wants layers.0.weight" in refused(
            alone.export("model.pt", factory="net:make")
        )

    def test_a_class_that_was_defined_in_the_script_itself(self, alone: Standalone) -> None:
        alone.saved("import torch\nclass Own(torch.nn.Module): pass\ntorch.save(Own(), 'model.pt')")
        found = refused(alone.export("model.pt"))
        assert "model.pt needs the class 'Own', which was defined in the script that saved it" in found

    def test_a_class_whose_module_is_not_there(self, alone: Standalone) -> None:
        alone.source(elsewhere="from torch import nn\nclass Net(nn.Module): pass\n")
        alone.saved("import torch, elsewhere; torch.save(elsewhere.Net(), 'model.pt')")
        (alone.work / "source" / "elsewhere.py").unlink()
        found = refused(alone.export("model.pt"))
        assert "The module 'elsewhere' is needed to load the model" in found
        assert "the source of the version's run has net" in found

    def test_a_path_through_the_model_that_depends_on_the_values(self, alone: Standalone) -> None:
        alone.source(flow=FLOW)
        alone.saved("import torch, flow; torch.save(flow.Flow(), 'model.pt')")
        found = refused(alone.export("model.pt"))
        assert "depends on the values of its input (flow.py, line 7: `if bool(x.sum() > 0):`)" in found

    def test_an_example_of_the_wrong_shape(self, alone: Standalone) -> None:
        alone.saved(WEIGHTS)
        ended = alone.export(
            "model.pt", factory="net:make", inputs=[{"name": "", "shape": [2, 5], "dtype": "float32"}]
        )
        assert "does not take the example input x 2x5 float32: RuntimeError: mat1 and mat2" in refused(ended)
        assert ended.report["field"] == "inputs"

    def test_an_axis_that_cannot_be_dynamic(self, alone: Standalone) -> None:
        alone.source(
            fixed=(
                "from torch import nn\n"
                "class Fixed(nn.Module):\n    def forward(self, x):\n        return x.reshape(2, 2, 2)\n"
            )
        )
        alone.saved("import torch, fixed; torch.save(fixed.Fixed(), 'model.pt')")
        assert "The axis 'batch' cannot be dynamic: the model only works with the size 2" in refused(
            alone.export("model.pt")
        )

    def test_an_operator_that_onnx_has_not(self, alone: Standalone) -> None:
        alone.source(
            odd=(
                "import torch\nfrom torch import nn\n"
                "class Odd(nn.Module):\n    def forward(self, x):\n        return "
                "torch.special.bessel_j0(x)\n"
            )
        )
        alone.saved("import torch, odd; torch.save(odd.Odd(), 'model.pt')")
        assert "uses the operator prims.bessel_j0, which has no counterpart in ONNX" in refused(
            alone.export("model.pt")
        )

    def test_a_model_that_differs_by_more_than_is_tolerated(self, alone: Standalone) -> None:
        alone.saved(WEIGHTS)
        ended = alone.export("model.pt", factory="net:make", relative=0.0, absolute=1e-12)
        assert "apart" in refused(ended)
        assert ended.report["differences"][0]["max_absolute"] > 1e-12

    def test_a_model_that_is_random_even_in_eval_mode(self, alone: Standalone) -> None:
        alone.source(
            dice=(
                "import torch\nfrom torch import nn\n"
                "class Dice(nn.Module):\n    def forward(self, x):\n        return x + torch.rand_like(x)\n"
            )
        )
        alone.saved("import torch, dice; torch.save(dice.Dice(), 'model.pt')")
        assert "other values each time it is called" in refused(alone.export("model.pt"))

    def test_what_is_no_model(self, alone: Standalone) -> None:
        (alone.files / "model.onnx").write_bytes(b"\x08\x0a")
        assert "model.onnx is not a PyTorch model" in refused(alone.export("model.onnx"))

    def test_bytes_that_are_not_those_that_were_registered(self, alone: Standalone) -> None:
        alone.saved(WEIGHTS)
        found = refused(alone.export("model.pt", spoil={"model.pt": "0" * 64}))
        assert "and 000000000000… was registered" in found

    def test_an_environment_that_lacks_the_exporter(self, alone: Standalone) -> None:
        command = [sys.executable, "-S", "export_onnx.py"]
        done = subprocess.run(command, cwd=alone.work, capture_output=True, text=True, check=False)
        report = json.loads((alone.work / "outputs" / "export-report.json").read_text())
        assert done.returncode == 1
        assert "lacks the Python package" in report["refusal"]
        assert report["refusal"] in done.stdout
        assert report["field"] == "environment"
