"""Serializers of the cause of a failure."""

from __future__ import annotations

from rest_framework import serializers


class OtherRankSerializer(serializers.Serializer[object]):
    rank = serializers.IntegerField()
    node = serializers.CharField()
    why = serializers.CharField(help_text="A short reason why this rank ended.")


class CauseSerializer(serializers.Serializer[object]):
    """Why a run failed or is failing: the rank that failed first, its error, and what to do."""

    line = serializers.CharField(help_text="The cause in one line.")
    rank = serializers.IntegerField(
        allow_null=True,
        help_text=(
            "The rank that failed first; null if no rank caused the failure, but a node, the environment "
            "or the time limit."
        ),
    )
    local_rank = serializers.IntegerField(allow_null=True)
    node = serializers.CharField()
    child = serializers.IntegerField(
        allow_null=True,
        help_text=(
            "The number that a launcher such as torchrun gave to the process that failed first; null if "
            "unknown."
        ),
    )
    sentence = serializers.CharField()
    message = serializers.CharField(
        help_text=(
            "The exception, if there is one; otherwise the title of the known failure, or the sentence."
        )
    )
    exception = serializers.CharField(
        help_text=(
            "The exception's type and message, or the log line that names the error; empty if there is "
            "neither."
        )
    )
    began = serializers.CharField(
        help_text="The earlier exception that led to this one, if it is a known failure; otherwise empty."
    )
    kind = serializers.CharField(
        help_text=(
            "The code of a known failure (see docs/failures.md); empty if the failure is not a known one."
        )
    )
    title = serializers.CharField()
    meaning = serializers.CharField()
    remedy = serializers.CharField(help_text="What to do about the failure.")
    action = serializers.CharField(
        help_text="What the page at `link` does about it, such as `Add pandas`; empty if there is none."
    )
    link = serializers.CharField(
        help_text=(
            "The path of a form on this hub that makes a version of the run's environment with the remedy; "
            "empty if there is none."
        )
    )
    log = serializers.CharField(help_text="The name of the log that is quoted; empty if none is.")
    offset = serializers.IntegerField(
        help_text="The byte offset in that log at which the quoted lines begin."
    )
    quote = serializers.CharField()
    at = serializers.DateTimeField(
        allow_null=True,
        help_text="When the failed rank or the run ended, by the hub's clock; null if unknown.",
    )
    is_certain = serializers.BooleanField(
        help_text=(
            "False if no rank reported an error of its own. This rank was then only the first to lose the "
            "others."
        )
    )
    ranks = serializers.ListField(
        child=serializers.IntegerField(),
        help_text="All ranks that failed with this error, if several did; otherwise empty.",
    )
    others = OtherRankSerializer(
        many=True, help_text="The other ranks that ended because of the same failure."
    )
