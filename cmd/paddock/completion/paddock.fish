# Completion of paddock for fish. It asks paddock itself, so it need not be generated anew.
function __paddock_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l program $words[1]
    set -e words[1]
    set -l answers ($program __complete -- $words "$current" 2>/dev/null)
    set -l how $answers[1]
    set -e answers[1]
    switch "$how"
        case files
            __paddock_paths __fish_complete_path $current
        case dirs
            __paddock_paths __fish_complete_directories $current
        case 'command *'
            set -l first (math (string replace 'command ' '' -- $how) + 1)
            set -l command
            test $first -gt (count $words); or set command (string escape -- $words[$first..-1])
            complete -C (string join ' ' -- $command $current)
        case '*'
            test (count $answers) -eq 0; or printf '%s\n' $answers
    end
end
function __paddock_paths # FUNCTION WORD: the paths that complete a word, or the value of --flag=value
    set -l parts (string match -r '^((?:--[^=]*=)?)(.*)$' -- $argv[2])
    for line in ($argv[1] "$parts[3]")
        echo $parts[2]$line
    end
end
complete -c paddock -f -a '(__paddock_complete)'
