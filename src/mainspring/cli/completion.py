"""`mainspring completion`: a script that lets a shell complete commands and options."""

from typing import Annotated, Literal

from cyclopts import Parameter

from mainspring.cli.command import command


@command("completion")
def completion(shell: Annotated[Literal["bash", "zsh", "fish"], Parameter(help="Which shell.")], /) -> None:
    """Print a completion script for a shell.

    Examples:
      mainspring completion bash >> ~/.bash_completion
      mainspring completion zsh > ~/.zfunc/_mainspring   (with ~/.zfunc in fpath)
      mainspring completion fish > ~/.config/fish/completions/mainspring.fish
    """
    from mainspring.cli.commands import commands as everything

    print(everything.generate_completion(prog_name="mainspring", shell=shell))
