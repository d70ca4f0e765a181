"""Where the other web servers of this hub reach this one."""

from __future__ import annotations

from trainhub import addresses, env, installation


def link_bind() -> installation.Bind | None:
    """Returns what SERVER_ADDRESS says; None if this is the only server. Raises EnvError for an address that
    means several."""
    text = env.text("SERVER_ADDRESS", "")
    if not text:
        return None
    bind = installation.parse_bind("SERVER_ADDRESS", text)
    if bind.host in installation.ANY_ADDRESS:
        raise env.EnvError(
            f"SERVER_ADDRESS={text} must name the address at which the other servers reach this one, for "
            "example 10.0.0.5:8010"
        )
    return bind


def server_address() -> str:
    """Returns the same as HOST:PORT, or ""."""
    bind = link_bind()
    return "" if bind is None else f"{addresses.bracketed(bind.host)}:{bind.port}"
