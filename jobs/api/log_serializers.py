"""The JSON shapes of logs, search results and outputs."""

from __future__ import annotations

from rest_framework import serializers


class LogSerializer(serializers.Serializer[object]):
    name = serializers.CharField()
    rank = serializers.IntegerField(
        allow_null=True,
        help_text=(
            "The rank whose output the log contains; null for a log of no rank, such as that of the "
            "preparation."
        ),
    )
    size = serializers.IntegerField(help_text="The number of bytes that the hub has received.")
    complete = serializers.BooleanField(
        help_text="True if the log is final and all its bytes have been received."
    )
    url = serializers.CharField(
        help_text=(
            "The address of the log's content. It takes `offset`, `limit` and `attempt`, or `download=1`."
        )
    )


class LogListSerializer(serializers.Serializer[object]):
    attempt = serializers.IntegerField()
    logs = LogSerializer(many=True)
    removed = serializers.CharField(
        help_text="That a retention rule has removed what was here, as a sentence; empty if none has."
    )


class LogHitSerializer(serializers.Serializer[object]):
    log = serializers.CharField()
    rank = serializers.IntegerField(allow_null=True)
    node = serializers.CharField(allow_null=True)
    line = serializers.IntegerField(help_text="The line number, starting at 1.")
    offset = serializers.IntegerField(help_text="The offset of the line's first byte in the log.")
    at = serializers.DateTimeField(
        help_text="The latest possible time of the line's arrival, by the hub's clock."
    )
    resolution_s = serializers.FloatField(
        allow_null=True, help_text="The line arrived within this many seconds before `at`; null if `late`."
    )
    late = serializers.BooleanField(
        help_text=(
            "True if the line was held back because node and hub could not reach each other, so that the "
            "time of its writing is unknown."
        )
    )
    text = serializers.CharField(
        help_text="The line without escape sequences; a long line is trimmed around the first match."
    )
    spans = serializers.ListField(
        child=serializers.ListField(child=serializers.IntegerField()),
        help_text="The half-open range [begin, end) of each match in `text`, in characters (code points).",
    )


class LogSearchSerializer(serializers.Serializer[object]):
    attempt = serializers.IntegerField()
    order = serializers.CharField()
    logs = serializers.IntegerField(help_text="The number of logs that are searched.")
    results = LogHitSerializer(many=True)
    next = serializers.CharField(
        allow_null=True, help_text="The cursor of the next page; null if everything has been searched."
    )
    searched_bytes = serializers.IntegerField(
        help_text="The number of bytes searched so far, including those of earlier pages."
    )
    total_bytes = serializers.IntegerField(help_text="The total size of the searched logs, in bytes.")


class OutputSerializer(serializers.Serializer[object]):
    path = serializers.CharField()
    size_bytes = serializers.IntegerField()
    sha256 = serializers.CharField()
    place = serializers.CharField(
        help_text=(
            "Where the file lies if that is in a datastore; its size and SHA-256 are then as the node said. "
            "Empty: on the hub."
        )
    )
    url = serializers.CharField(help_text="The address of the file's content; supports Range requests.")


class OutputListSerializer(serializers.Serializer[object]):
    attempt = serializers.IntegerField()
    outputs = OutputSerializer(many=True)
    removed = serializers.CharField(
        help_text="That a retention rule has removed what was here, as a sentence; empty if none has."
    )
