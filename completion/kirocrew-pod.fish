# fish completion of kirocrew-pod: the program says what could stand there, in the words of its own tables and records.
function __kirocrew_pod_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l program $words[1]
    set -e words[1]
    for line in (command $program _complete -- $words "$current" 2>/dev/null)
        switch $line
            case ':files'
                __fish_complete_path "$current"
            case ':directories'
                __fish_complete_directories "$current"
            case ':commands'
                __fish_complete_command
            case '*'
                echo $line
        end
    end
end
complete -c kirocrew-pod -f -a '(__kirocrew_pod_complete)'
