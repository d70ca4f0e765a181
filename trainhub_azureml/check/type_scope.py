"""Which class of the SDK v1 an expression of a script belongs to, as far as its assignments say."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from trainhub_azureml.check.catalog import Catalog, ValueType

# Names that scripts give to parameters, whose values come from elsewhere.
_USUAL_NAMES = {"ws": "Workspace", "workspace": "Workspace", "run": "Run", "experiment": "Experiment"}


class TypeScope:
    """`modules`: the module of `azureml` for each name of the script; `classes`: the class or function for
    each name; `texts`: the constant strings of names."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.modules: dict[str, str] = {}
        self.classes: dict[str, str] = {}
        self.values: dict[str, ValueType] = {}
        self.texts: dict[str, str] = {}

    def assign(self, target: ast.expr, value: ast.expr | None) -> None:
        name = _dotted(target)
        if not name:
            return
        self.values.pop(name, None)
        kind = self.type_of(value) if value is not None else None
        if kind is not None:
            self.values[name] = kind
        text = self.text_of(value)
        if text is not None:
            self.texts[name] = text

    def assign_item(self, target: ast.expr, values: ast.expr) -> None:
        """For a variable that goes through `values`."""
        kind, name = self.type_of(values), _dotted(target)
        if name and kind is not None and kind.is_item:
            self.values[name] = ValueType(kind.name)

    def assign_parameters(self, arguments: ast.arguments) -> None:
        for argument in [*arguments.args, *arguments.kwonlyargs]:
            named = _dotted(argument.annotation) if argument.annotation is not None else ""
            name = self.classes.get(named) or (_USUAL_NAMES.get(argument.arg) if self.classes else None)
            self.values.pop(argument.arg, None)
            if name:
                self.values[argument.arg] = ValueType(name)

    def text_of(self, value: ast.expr | None) -> str | None:
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            return value.value
        return self.texts.get(_dotted(value)) if value is not None else None

    def class_of(self, node: ast.expr) -> str:
        """Returns the offered class or function that an expression names, "" if it names none."""
        return self._class_named(_dotted(node))

    def _class_named(self, name: str) -> str:
        if name in self.classes:
            return self.classes[name]
        module, _, last = name.rpartition(".")
        outer = self._class_named(module) if module and last[:1].isupper() else ""
        if outer:
            # A class that is an attribute of another, such as Dataset.File.
            inner = self._member(outer, last)
            return inner.name if inner is not None else ""
        full = self.module_of(module)
        return self.catalog.places.get(full, {}).get(last, "") if full else ""

    def module_of(self, name: str) -> str:
        """Returns the module of `azureml` that a dotted name of the script means, "" if it means none."""
        first, _, rest = name.partition(".")
        if first not in self.modules:
            return ""
        return ".".join(filter(None, (self.modules[first], rest)))

    def type_of(self, node: ast.expr) -> ValueType | None:
        if isinstance(node, ast.Await):
            return self.type_of(node.value)
        name = _dotted(node)
        if name in self.values:
            return self.values[name]
        if isinstance(node, ast.Call):
            return self._type_of_call(node)
        if isinstance(node, ast.Attribute):
            owner = self.type_of(node.value)
            return self._member(owner.name, node.attr) if owner is not None and not owner.is_item else None
        if isinstance(node, ast.Subscript):
            owner = self.type_of(node.value)
            return ValueType(owner.name) if owner is not None and owner.is_item else None
        return None

    def _type_of_call(self, node: ast.Call) -> ValueType | None:
        function = node.func
        named = self.class_of(function)
        if named:
            cls = "AmlCompute" if named == "ComputeTarget" else named
            return ValueType(cls) if cls in self.catalog.members else None
        if isinstance(function, ast.Attribute):
            owner_class = self.class_of(function.value)
            if owner_class:
                return self._member(owner_class, function.attr)
            return self.type_of(function)
        if isinstance(function, ast.Name) and function.id in ("list", "next", "sorted") and node.args:
            kind = self.type_of(node.args[0])
            return ValueType(kind.name) if kind and kind.is_item and function.id == "next" else kind
        return None

    def _member(self, owner: str, name: str) -> ValueType | None:
        members: Mapping[str, ValueType | None] = self.catalog.members.get(owner, {})
        # Inside a job or not: the calls are the same.
        return ValueType("Run") if (owner, name) == ("Run", "get_context") else members.get(name)


def _dotted(node: ast.expr | None) -> str:
    """Returns `a.b.c` of an expression that is only names, "" of others."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        owner = _dotted(node.value)
        return f"{owner}.{node.attr}" if owner else ""
    return ""
