"""`odradek completion`: the few lines with which a shell asks for completions."""

from __future__ import annotations

from typing import Annotated, Literal

from ..declarations import Argument

BASH = r"""
_odradek() {
    local IFS=$'\n'
    COMPREPLY=($(odradek __complete bash "${COMP_LINE:0:COMP_POINT}" 2>/dev/null))
    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace
    return 0
}
complete -o default -F _odradek odradek
"""
ZSH = r"""
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit -i }
_odradek() {
    local -a found
    found=(${(f)"$(odradek __complete zsh "${(j: :)words[1,CURRENT]}" 2>/dev/null)"})
    (( $#found )) || { _files; return }
    compadd -S '' -- ${(M)found:#*=}
    compadd -- ${found:#*=}
}
compdef _odradek odradek
"""
FISH = r"""
complete -c odradek -a '(odradek __complete fish (commandline -cp) 2>/dev/null)'
"""
SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}


def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], Argument(metavar="SHELL", show_default=False)],
) -> None:
    """Print what makes a shell complete commands, options, topics, groups and settings.

    ```
    odradek completion bash >> ~/.bashrc
    odradek completion zsh >> ~/.zshrc
    odradek completion fish >> ~/.config/fish/config.fish
    ```

    Names come from the cluster that the line, or ODRADEK_BOOTSTRAP_SERVER, names. Where it does
    not answer within 1.5 s there are none.
    """
    print(SCRIPTS[shell].strip())
