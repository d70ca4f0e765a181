"""Celery tasks of the hub's worker. Each calls one function, and may run twice without harm."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from workspaces.administration import password_links
from workspaces.audit_trail import chain
from workspaces.authentication import login_throttle
from workspaces.device_login import device_requests
from workspaces.mail import invitation_links, mail_addresses, outgoing_mails
from workspaces.notifications import delivery


@shared_task(ignore_result=True)
def deliver() -> None:
    delivery.tick(timezone.now())


@shared_task(ignore_result=True)
def forget_deliveries() -> None:
    delivery.forget(timezone.now())
    outgoing_mails.forget(timezone.now())


@shared_task(ignore_result=True)
def send_mails() -> None:
    outgoing_mails.tick(timezone.now())


@shared_task(ignore_result=True)
def forget_sign_in_attempts() -> None:
    login_throttle.forget_old()
    password_links.delete_expired()
    device_requests.delete_expired()
    mail_addresses.delete_expired()
    invitation_links.delete_expired()


@shared_task(ignore_result=True)
def seal_audit_trail() -> None:
    chain.seal_new()


@shared_task(ignore_result=True)
def delete_old_audit_events() -> None:
    while chain.delete_old(timezone.now()):
        pass
