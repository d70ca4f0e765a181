"""Template tags for the machines and the journal of a cluster."""

from __future__ import annotations

from django import template

from clusters import journal
from clusters.models import Cluster, ClusterEvent, ProvidedMachine
from clusters.provisioning import cluster_journal, machines

register = template.Library()
register.filter("event_word", journal.kind_word)


@register.simple_tag
def machines_of(cluster: Cluster) -> list[ProvidedMachine]:
    return machines.active(cluster)


@register.simple_tag
def events_of(cluster: Cluster) -> list[ClusterEvent]:
    return cluster_journal.recent(cluster)
