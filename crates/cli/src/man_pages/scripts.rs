//! The parts of the scripts of `downpour completions` that complete hosts and remote paths. In them, `COMMANDS` and
//! `OF_PLACES` are placeholders for the names of the commands that take these.

use clap_complete::Shell;

use crate::args::{Completed, completing};

/// Bash splits words at colons: the word is read from the line, and the completions begin after the last colon.
const BASH: &str = r#"
_downpour_places() {
    _downpour "$@"
    case "${COMP_WORDS[1]}" in
        COMMANDS) ;;
        *) return 0 ;;
    esac
    local line=${COMP_LINE:0:COMP_POINT} typed= quote= before= place char i
    # The word before the cursor, without its quotes.
    for (( i = 0; i < ${#line}; i++ )); do
        char=${line:i:1}
        if [[ $char == "$quote" ]]; then
            quote=
        elif [[ $quote != "'" && $char == "\\" ]]; then
            i=$(( i + 1 ))
            typed+=${line:i:1}
        elif [[ -n $quote ]]; then
            typed+=$char
        elif [[ $char == [\"\'] ]]; then
            quote=$char
        elif [[ $char == [[:space:]] ]]; then
            typed=
        else
            typed+=$char
        fi
    done
    [[ $typed == -* ]] && return 0
    # Within quotes bash splits at no colon, and adds the closing quote itself.
    if [[ -z $quote && $COMP_WORDBREAKS == *:* && $typed == *:* ]]; then
        before=${typed%"${typed##*:}"}
    fi
    if [[ $typed == *:* && ${typed%%:*} != */* ]]; then
        # Local files are not on that host.
        COMPREPLY=()
        compopt +o default +o bashdefault 2>/dev/null
    fi
    local -a places=()
    while IFS= read -r place; do
        places+=("${place#"$before"}")
    done < <("${COMP_WORDS[0]/#\~/$HOME}" complete "${COMP_WORDS[1]}" -- "$typed" 2>/dev/null)
    (( ${#places[@]} )) || return 0
    if [[ $typed != *:* ]]; then
        while IFS= read -r place; do
            places+=("$place")
        done < <(compgen -f -- "$typed")
    fi
    for place in "${places[@]}"; do
        case $quote in
            \") place=${place//\\/\\\\} place=${place//\"/\\\"} place=${place//\$/\\\$} place=${place//\`/\\\`} ;;
            \') place=${place//\'/\'\\\'\'} ;;
            *) printf -v place %q "$place" ;;
        esac
        COMPREPLY+=("$place")
    done
    [[ ${#places[@]} -eq 1 && ${places[0]} != *[:/] ]] || compopt -o nospace 2>/dev/null
    return 0
}

if [[ "${BASH_VERSINFO[0]}" -eq 4 && "${BASH_VERSINFO[1]}" -ge 4 || "${BASH_VERSINFO[0]}" -gt 4 ]]; then
    complete -F _downpour_places -o nosort -o bashdefault -o default downpour
else
    complete -F _downpour_places -o bashdefault -o default downpour
fi
"#;

/// The line of the script that completes files and splits their names. Without completions of the script, bash completes
/// files itself, quoted.
const BASH_FILES: &str = r#"COMPREPLY=($(compgen -f "${cur}"))"#;

/// zsh calls the function with the name of the file: this one, which calls the one generated from the definition.
const ZSH: &str = r#"
_downpour() {
    local -a places
    if [[ ${words[2]} == (COMMANDS) && $PREFIX != -* ]]; then
        places=("${(@f)$(${(Q)words[1]/#\~/$HOME} complete ${words[2]} -- ${(Q)PREFIX} 2>/dev/null)}")
        places=(${places:#})
        (( $#places )) && compadd -S '' -- $places
    fi
    _downpour_words "$@"
}
"#;

const FISH: &str = r#"
function __downpour_places
    set -l words (commandline -opc)
    set -q words[2]; or return
    command $words[1] complete $words[2] -- (commandline -ct) 2>/dev/null
end
# Local files are not on a host.
function __downpour_is_far
    __fish_seen_subcommand_from OF_PLACES; and string match -qr '^[^/]*:' -- (commandline -ct)
end
complete -c downpour -n "__fish_seen_subcommand_from COMMANDS" -a "(__downpour_places)"
complete -c downpour -n __downpour_is_far -f
"#;

/// Adds hosts and remote paths to a script generated from the definition of the arguments.
pub(crate) fn with_places(shell: Shell, script: &str) -> String {
    let names = |separator: &str, kinds: &[Completed]| {
        kinds.iter().copied().flat_map(completing).collect::<Vec<_>>().join(separator)
    };
    let all = |separator| names(separator, &[Completed::Places, Completed::Host]);
    match shell {
        Shell::Bash => {
            let places = BASH.replace("COMMANDS", &all("|"));
            format!("{}{places}", script.replace(BASH_FILES, "COMPREPLY=()"))
        }
        Shell::Fish => {
            let places = FISH.replace("COMMANDS", &all(" ")).replace("OF_PLACES", &names(" ", &[Completed::Places]));
            format!("{script}{places}")
        }
        Shell::Zsh => {
            let script = script.replacen("\n_downpour() {\n", "\n_downpour_words() {\n", 1);
            let last = script.rfind("\nif [ \"$funcstack[1]\"").unwrap_or(script.len());
            format!("{}{}{}", &script[..last], ZSH.replace("COMMANDS", &all("|")), &script[last..])
        }
        _ => script.to_owned(),
    }
}
