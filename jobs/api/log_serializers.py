"""The shapes of logs and of hits in them."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers


class LogSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    rank = serializers.IntegerField(
        allow_null=True, help_text="Whose output it is; null for the preparation's and the script's own."
    )
    size = serializers.IntegerField(help_text="Bytes that have arrived.")
    complete = serializers.BooleanField(help_text="Whether every byte it will ever have has arrived.")
    url = serializers.CharField(help_text="Its bytes: ?offset=&limit=&attempt=, or download=1.")


class LogListSerializer(serializers.Serializer[Any]):
    attempt = serializers.IntegerField()
    logs = LogSerializer(many=True)


class LogHitSerializer(serializers.Serializer[Any]):
    log = serializers.CharField()
    rank = serializers.IntegerField(allow_null=True)
    node = serializers.CharField(allow_null=True)
    line = serializers.IntegerField(help_text="From 1.")
    offset = serializers.IntegerField(help_text="Of the line's first byte in the log.")
    at = serializers.DateTimeField(help_text="When the line had arrived, by the hub's clock.")
    resolution_s = serializers.FloatField(
        allow_null=True, help_text="It arrived in this time before `at`; null where late."
    )
    late = serializers.BooleanField(help_text="It had waited on its node: when it was written is not known.")
    text = serializers.CharField(
        help_text="As seen: without escape sequences, trimmed around the first match."
    )
    spans = serializers.ListField(
        child=serializers.ListField(child=serializers.IntegerField()),
        help_text="[begin, end) of every match in `text`, in characters (code points).",
    )


class LogSearchSerializer(serializers.Serializer[Any]):
    attempt = serializers.IntegerField()
    order = serializers.CharField()
    logs = serializers.IntegerField(help_text="How many are looked through.")
    results = LogHitSerializer(many=True)
    next = serializers.CharField(
        allow_null=True, help_text="The cursor to go on with; null when everything is looked through."
    )
    searched_bytes = serializers.IntegerField(help_text="Looked through so far, by the pages before too.")
    total_bytes = serializers.IntegerField(help_text="Of all these logs.")
