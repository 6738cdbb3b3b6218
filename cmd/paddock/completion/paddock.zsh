#compdef paddock
# Completion of paddock for zsh. It asks paddock itself, so it need not be generated anew.
_paddock() {
    local how line value
    local -a before answers
    before=("${(@Q)words[1,CURRENT-1]}")
    before=("${(@)before/#\~\//$HOME/}")
    answers=("${(@f)$("${before[1]}" __complete -- "${(@)before[2,-1]}" "${(Q)PREFIX}" 2>/dev/null)}")
    how=${answers[1]}
    shift answers
    case $how in
    files) [[ $PREFIX != --*=* ]] || compset -P '*='; _files ;;
    dirs) [[ $PREFIX != --*=* ]] || compset -P '*='; _files -/ ;;
    command*)
        local -i first=$((${how#command } + 2))
        words=("${(@)words[first,-1]}")
        ((CURRENT -= first - 1))
        _normal
        ;;
    *)
        local -a ends goes_on
        for line in "${(@)answers}"; do
            value=${line%%$'\t'*}
            line=${value//:/\\:}${${line#*$'\t'}:+:${line#*$'\t'}}
            [[ $value = *: ]] && goes_on+=("$line") || ends+=("$line")
        done
        ((! $#ends)) || _describe -V paddock ends
        ((! $#goes_on)) || _describe -V paddock goes_on -S ''
        ((compstate[nmatches]))
        ;;
    esac
}
if [[ ${funcstack[1]} = _paddock ]]; then # loaded by compinit
    _paddock "$@"
else
    compdef _paddock paddock
fi
