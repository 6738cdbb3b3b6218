# Completion of paddock for bash. It asks paddock itself, so it need not be generated anew.
_paddock() {
    local line=${COMP_LINE:0:COMP_POINT} word how i breaks=''
    local -a words=() starts=()
    COMPREPLY=()
    # Bash has split the line at : and =, too. A word of paddock goes on until a blank.
    for ((i = 0; i <= COMP_CWORD; i++)); do
        if [[ $i -eq 0 || $line = [[:blank:]]* ]]; then
            line=${line#"${line%%[![:blank:]]*}"}
            words+=('')
            starts+=("$i")
        fi
        word=${COMP_WORDS[i]:0:${#line}}
        words[${#words[@]} - 1]+=$word
        line=${line:${#word}}
    done
    local quoted=${words[${#words[@]} - 1]}
    words=("${words[@]//[\"\'\\]/}")
    words=("${words[@]/#\~\//$HOME/}")
    local current=${words[${#words[@]} - 1]}
    {
        IFS= read -r how
        while IFS= read -r word; do
            COMPREPLY+=("${word%%$'\t'*}")
        done
    } < <("${words[0]}" __complete -- "${words[@]:1}" 2>/dev/null)
    case $how in
    files) return ;; # the default of readline
    command*)
        i=$((${how#command } + 1))
        if [[ $i -lt $((${#words[@]} - 1)) ]]; then
            ! declare -F _command_offset >/dev/null || _command_offset "${starts[i]}"
        elif [[ $current != */* ]]; then
            while IFS= read -r word; do
                COMPREPLY+=("$word")
            done < <(compgen -c -- "$current")
        fi
        return
        ;;
    dirs) compopt +o default -o dirnames 2>/dev/null ;;
    *) compopt +o default 2>/dev/null ;;
    esac
    [[ ${#COMPREPLY[@]} -gt 0 ]] || return 0
    [[ ${COMPREPLY[0]} != *: ]] || compopt -o nospace 2>/dev/null
    # Readline replaces only what stands after the last : or =, unless the word is quoted.
    [[ $COMP_WORDBREAKS != *:* ]] || breaks+=:
    [[ $COMP_WORDBREAKS != *=* ]] || breaks+==
    if [[ -n $breaks && $quoted != [\"\']* ]]; then
        COMPREPLY=("${COMPREPLY[@]#"${current%"${current##*[$breaks]}"}"}")
    fi
}
complete -o default -F _paddock paddock
