"""Model instances of the rows of a query whose SQL is kept.

Django looks up the columns of each model for each query, sends two signals for each instance, and sets each
field through its descriptor. That took as long as the query itself where it answers with one row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.db import DEFAULT_DB_ALIAS
from django.db.models import Model
from django.db.models.base import ModelState
from django.db.models.signals import post_init, pre_init

Row = Sequence[Any]


def instance_maker(class_info: Mapping[str, Any], columns: Sequence[Any]) -> Callable[[Row], Model | None]:
    """Returns a function that makes the instance of a row, with those of its `select_related`, and None where
    an outer join found nothing. `class_info` and `columns`: `klass_info` and `select` of Django's compiler.
    Raises TypeError for a model that inherits columns from another one."""
    model: type[Model] = class_info["model"]
    if class_info.get("from_parent") or model._meta.parents:
        raise TypeError(f"{model.__name__} has columns in several tables")
    places = class_info["select_fields"]
    first, end = places[0], places[-1] + 1
    names = [columns[place][0].target.attname for place in range(first, end)]
    key = first + names.index(model._meta.pk.attname)
    make_alone = _from_columns if _is_plain(model) else _from_db
    parts = [
        (instance_maker(part, columns), part["local_setter"], part["remote_setter"])
        for part in class_info.get("related_klass_infos", ())
    ]

    def make(row: Row) -> Model | None:
        if row[key] is None:
            return None
        instance = make_alone(model, names, row[first:end])
        for make_part, set_part, set_whole in parts:
            part = make_part(row)
            set_part(instance, part)
            if part is not None:
                set_whole(part, instance)
        return instance

    return make


def _is_plain(model: type[Model]) -> bool:
    """Tells whether Django alone makes the instances: the model has no `__init__` or `from_db` of its own,
    and nothing receives its signals now, when the query is compiled."""
    own_makers = [
        base
        for base in model.__mro__[: model.__mro__.index(Model)]
        if not {"__init__", "from_db"}.isdisjoint(vars(base))
    ]
    return not (own_makers or pre_init.has_listeners(model) or post_init.has_listeners(model))


def _from_columns(model: type[Model], names: Sequence[str], values: Row) -> Model:
    instance = model.__new__(model)
    state = ModelState()
    state.adding, state.db = False, DEFAULT_DB_ALIAS
    # Fields that the query leaves out are missing here, too, by which Django knows that they are deferred.
    instance.__dict__.update(zip(names, values, strict=True), _state=state)
    return instance


def _from_db(model: type[Model], names: Sequence[str], values: Row) -> Model:
    return model.from_db(DEFAULT_DB_ALIAS, names, values)
