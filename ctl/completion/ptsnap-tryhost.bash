# Completion of ptsnap-tryhost for bash. Options and values are those of `ptsnap-tryhost --help'.

_ptsnap_tryhost() {
	local cur=$2 option=$3 help
	COMPREPLY=()
	[[ " ${COMP_WORDS[*]:0:COMP_CWORD} " != *" -- "* ]] || { compopt -o default; return; }
	help=$(command ptsnap-tryhost --help 2>/dev/null | grep '^  --')
	# bash divides words at "=".
	[[ $option != = ]] || option=${COMP_WORDS[COMP_CWORD - 2]}
	case $option in
	--cpu-model)
		mapfile -t COMPREPLY < <(compgen -W "$(sed -n 's/^  --cpu-model=MODEL *\([a-z|]*\).*/\1/p' \
			<<<"$help" | tr '|' ' ')" -- "${cur#=}")
		;;
	--share) mapfile -t COMPREPLY < <(compgen -d -- "${cur#=}") ;;
	*)
		mapfile -t COMPREPLY < <(compgen -W "-- $(grep -o -- '--[a-z-]*=\?' <<<"$help")" -- "$cur")
		[[ ${COMPREPLY[*]} != *= ]] || compopt -o nospace
		;;
	esac
}
complete -F _ptsnap_tryhost ptsnap-tryhost
