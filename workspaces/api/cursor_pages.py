"""Lists in pages that a cursor leads through."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ValidationError
from rest_framework.pagination import CursorPagination
from rest_framework.request import Request
from rest_framework.views import APIView

from trainhub_launch.errors import SpecError

if TYPE_CHECKING:
    from django.db.models import QuerySet


class CursorPages(CursorPagination):
    """The base of all lists in pages. `ordering` must end with a unique key, which breaks ties: otherwise a
    row could be missed or shown twice."""

    def paginate_queryset(
        self, queryset: QuerySet[Any] | Sequence[Any], request: Request, view: APIView | None = None
    ) -> list[Any] | None:
        """Returns a page. Raises SpecError for a cursor that is well formed and fits no row of this order,
        such as text where the order is one by time."""
        try:
            return super().paginate_queryset(queryset, request, view)
        except (ValidationError, ValueError) as error:
            raise SpecError("cursor", "is not a cursor of this list; start again without it") from error
