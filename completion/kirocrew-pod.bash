# bash completion of kirocrew-pod: the program says what could stand there, in the words of its own tables and records.
_kirocrew_pod() {
	local line current=${COMP_WORDS[COMP_CWORD]}
	COMPREPLY=()
	[ "$current" != = ] || current=
	while IFS= read -r line; do
		case $line in
		:files | :directories)
			compopt -o filenames 2>/dev/null
			local kind=-f
			[ "$line" = :files ] || kind=-d
			while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen "$kind" -- "$current")
			;;
		:commands)
			while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -c -- "$current")
			;;
		*) COMPREPLY+=("${line%%$'\t'*}") ;;
		esac
	done < <("${COMP_WORDS[0]}" _complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _kirocrew_pod kirocrew-pod
