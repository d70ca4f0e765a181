"""completion: what a shell needs to complete commands, options and runs."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from trainhub_cli.command_table import COMPLETION_VARIABLE, PROGRAM
from trainhub_cli.printing import print_text

SHELLS = ("bash", "zsh", "fish")
# Each works in an account that has never had a completion: no folder of completions need exist.
_INSTALL = {
    "bash": "trainhub completion bash > ~/.trainhub.bash && echo '. ~/.trainhub.bash' >> ~/.bashrc",
    "zsh": "trainhub completion zsh > ~/.trainhub.zsh && echo '. ~/.trainhub.zsh' >> ~/.zshrc",
    "fish": "mkdir -p ~/.config/fish/completions && "
    "trainhub completion fish > ~/.config/fish/completions/trainhub.fish",
}
_FIRST_LINE = {
    # Otherwise `@last` is two words of bash.
    "bash": "COMP_WORDBREAKS=${COMP_WORDBREAKS//@}",
    # An account without a framework for zsh may not have loaded what completions need.
    "zsh": "(( $+functions[compdef] )) || { autoload -Uz compinit && compinit -i; }",
}


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
def print_completion(shell: str) -> None:
    """Print the completion for bash, zsh or fish; it says how to install it."""
    kind = get_completion_class(shell)
    if kind is None:  # a shell that click has given up
        raise click.UsageError(f"shell: this version of click has no completion for {shell}.")
    complete = kind(click.get_current_context().find_root().command, {}, PROGRAM, COMPLETION_VARIABLE)
    # Not `source()`: that starts bash to see whether it is too old.
    script = complete.source_template % complete.source_vars()
    lines = script.strip("\n").split("\n")
    # Where zsh finds the script by itself, `#compdef` is the first line.
    place = 1 if lines[0].startswith("#compdef") else 0
    lines[place:place] = [f"# To install it: {_INSTALL[shell]}", _FIRST_LINE.get(shell, "")]
    print_text("\n".join(lines).rstrip())
