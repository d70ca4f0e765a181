"""Reads one script and says of each use of the SDK v1 what becomes of it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from trainhub_azureml.check.catalog import load_catalog
from trainhub_azureml.check.differences import CALLS, ESTIMATORS, NUMPY_ALIASES, REFUSALS, VARIABLES
from trainhub_azureml.check.pins import check_pins
from trainhub_azureml.check.type_scope import TypeScope
from trainhub_azureml.data.refused_members import MEMBERS
from trainhub_azureml.lazy_names import OFFERED
from trainhub_azureml.local_files.mapping import NameMapping
from trainhub_azureml.not_offered import module_sentence, name_sentence
from trainhub_azureml.submission.environment_choice import find_named

WORKS, DIFFERS, REFUSED = "works", "differs", "not offered"
MAPPING, PIN, ALIAS, UNREADABLE = "mapping", "pin", "numpy", "unreadable"
_FOREIGN = "azureml.mlflow"


class CallFinding(NamedTuple):
    """`level`: one of the words above; `call`: what the script uses; `sentence`: what becomes of it."""

    path: str
    line: int
    level: str
    call: str
    sentence: str = ""


class ScriptCheck(ast.NodeVisitor):
    """Visits a script in its order. `findings`: what it has found."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.findings: list[CallFinding] = []
        self._scope = TypeScope(load_catalog())
        self._numpy: set[str] = set()

    def _add(self, node: ast.AST, level: str, call: str, sentence: str = "") -> None:
        self.findings.append(CallFinding(self.path, getattr(node, "lineno", 0), level, call, sentence))

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            if alias.name == "numpy":
                self._numpy.add(alias.asname or "numpy")
            if alias.name.split(".")[0] != "azureml":
                continue
            if self._is_refused(node, alias.name):
                continue
            self._scope.modules[alias.asname or "azureml"] = alias.name if alias.asname else "azureml"

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = node.module or ""
        if node.level or module.split(".")[0] != "azureml" or self._is_refused(node, module):
            return
        offered = self._scope.catalog.places.get(module, {})
        for alias in node.names:
            name = alias.asname or alias.name
            if alias.name in offered:
                self._scope.classes[name] = offered[alias.name]
                self._use(node, offered[alias.name], quiet=True)
            elif f"{module}.{alias.name}" in OFFERED:
                self._scope.modules[name] = f"{module}.{alias.name}"
            elif alias.name != "*":
                full = f"{module}.{alias.name}"
                sentence = module_sentence(full) if module == "azureml" else name_sentence(module, alias.name)
                self._add(node, REFUSED, full, sentence.partition(": ")[2])
            else:
                self._scope.classes.update(offered)

    def _is_refused(self, node: ast.AST, module: str) -> bool:
        if module == "azureml" or module in OFFERED or module.startswith(_FOREIGN):
            return False
        self._add(node, REFUSED, module, module_sentence(module).partition(": ")[2])
        return True

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        for target in node.targets:
            self.visit(target)
            self._scope.assign(target, node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.generic_visit(node)
        self._scope.assign(node.target, node.value)

    def visit_For(self, node: ast.For) -> None:
        self.visit(node.iter)
        self._scope.assign_item(node.target, node.iter)
        for statement in [*node.body, *node.orelse]:
            self.visit(statement)

    def visit_With(self, node: ast.With) -> None:
        for item in node.items:
            self.visit(item.context_expr)
            if item.optional_vars is not None:
                self._scope.assign(item.optional_vars, item.context_expr)
        for statement in node.body:
            self.visit(statement)

    def _visit_comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
    ) -> None:
        for generator in node.generators:
            self._scope.assign_item(generator.target, generator.iter)
        self.generic_visit(node)

    # The names are those of ast.NodeVisitor.
    visit_ListComp = visit_SetComp = visit_GeneratorExp = visit_DictComp = _visit_comprehension  # noqa: N815

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        outer = dict(self._scope.values)
        self._scope.assign_parameters(node.args)
        self.generic_visit(node)
        self._scope.values = outer

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self.generic_visit(node)
        if isinstance(node.value, ast.Name) and node.value.id in self._numpy and node.attr in NUMPY_ALIASES:
            self._add(
                node, ALIAS, f"{node.value.id}.{node.attr}", "NumPy 1.24 has removed it: require numpy<1.24"
            )
            return
        owner = self._owner(node.value)
        if owner:
            self._use_member(node, owner, node.attr)

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)
        named = self._scope.class_of(node.func)
        if named:
            self._use(node, named)
        self._find_names(node, named)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self.generic_visit(node)
        key = getattr(node.slice, "value", None) if not isinstance(node.slice, ast.Constant) else node.slice
        name = self._scope.text_of(key if isinstance(key, ast.expr) else node.slice)
        is_targets = isinstance(node.value, ast.Attribute) and node.value.attr == "compute_targets"
        if name and is_targets and self._owner(getattr(node.value, "value", node)) == "Workspace":
            self._map_compute(node, name)

    def visit_Constant(self, node: ast.Constant) -> None:
        text = node.value if isinstance(node.value, str) else ""
        sentence = VARIABLES.get(text.lstrip("$"))
        if sentence:
            self._add(node, DIFFERS, text, sentence)

    def _owner(self, node: ast.expr) -> str:
        """Returns the class whose member is taken from an expression, "" if it is none that is offered."""
        kind = self._scope.type_of(node)
        if kind is not None:
            return "" if kind.is_item else kind.name
        return self._scope.class_of(node)

    def _use_member(self, node: ast.AST, owner: str, member: str) -> None:
        members = self._scope.catalog.members.get(owner)
        if members is None or member.startswith("__"):
            return
        if member in members or member == "_run_id":
            self._use(node, f"{owner}.{member}")
            return
        owners = (owner, _OTHER_OWNERS.get(owner, owner))
        sentences = filter(None, (MEMBERS.get(f"{name}.{member}") for name in owners))
        sentence = next(sentences, "") or next(
            (text for prefix, text in _MEMBERS.items() if member.startswith(prefix)),
            "there is no counterpart",
        )
        self._add(node, REFUSED, f"{owner}.{member}", sentence)

    def _use(self, node: ast.AST, call: str, *, quiet: bool = False) -> None:
        how = CALLS.get(call)
        if call in REFUSALS:
            if not quiet:
                self._add(node, REFUSED, call, REFUSALS[call])
        elif how or not quiet:
            self._add(node, DIFFERS if how else WORKS, call, how or "")

    def _find_names(self, node: ast.Call, named: str) -> None:
        """Adds the names that a mapping may be needed for, and pins."""
        keywords = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
        positional = [*node.args, None, None]
        function = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        owner = self._owner(node.func.value) if isinstance(node.func, ast.Attribute) else ""
        if named in ("ComputeTarget", "AmlCompute") or (function == "create" and "Comput" in owner):
            name = self._scope.text_of(keywords.get("name", positional[1]))
            if name:
                self._map_compute(node, name)
        if named in ("ScriptRunConfig", *ESTIMATORS):
            name = self._scope.text_of(keywords.get("compute_target"))
            if name:
                self._map_compute(node, name)
        if owner == "Environment" and function == "get":
            name = self._scope.text_of(keywords.get("name", positional[1]))
            if name:
                self._map_environment(node, name)
        if owner == "CondaDependencies" or named in ESTIMATORS:
            packages = [keywords.get("pip_packages"), keywords.get("conda_packages"), *node.args]
            self._add_pins(node, [text for part in packages for text in self._texts(part)])

    def _texts(self, node: ast.expr | None) -> Iterable[str]:
        parts = node.elts if isinstance(node, (ast.List, ast.Tuple)) else [node]
        return filter(None, map(self._scope.text_of, parts))

    def _add_pins(self, node: ast.AST, lines: Iterable[str]) -> None:
        for line, reason in check_pins(lines):
            self._add(node, PIN, line, reason)

    def _map_compute(self, node: ast.AST, name: str) -> None:
        if name != "local":
            self._add(
                node, MAPPING, f'[compute."{name}"]', "unless the hub has a cluster of this name, or only one"
            )

    def _map_environment(self, node: ast.AST, name: str) -> None:
        named = find_named(name, None, NameMapping(), ())
        sentence = "its name does not say what it is" if named is None else named.note.partition(". ")[0]
        self._add(node, MAPPING, f'[environment."{name}"]', sentence)


# A dataset that was looked up by its name may be one of tables, and those have what all datasets have.
_OTHER_OWNERS = {
    "AbstractDataset": "TabularDataset",
    "FileDataset": "AbstractDataset",
    "TabularDataset": "AbstractDataset",
}
_MEMBERS = {
    "deploy": "web services are not offered: download the model, or export it to ONNX",
    "get_default_keyvault": "store a secret on the hub, and give its name to a variable of the run",
    "get_secret": "store a secret on the hub, and give its name to a variable of the run",
    "get_best_run": "automated machine learning is not offered: submit a script that searches by itself",
    "webservices": "web services are not offered",
    "from_existing_conda_environment": "use Environment.from_conda_specification with a file",
}


def findings_of(trees: Iterable[tuple[str, ast.Module]]) -> Iterator[CallFinding]:
    """Yields the findings of scripts by path."""
    for path, tree in trees:
        check = ScriptCheck(path)
        check.visit(tree)
        yield from check.findings
