# Completion of ptsnapctl for bash. Verbs, options and values are those of `ptsnapctl --help', and
# IDs those of `ptsnapctl list', so that this file need not change with the program.

# Verbs, one a line.
_ptsnapctl_verbs() {
	command ptsnapctl --help 2>/dev/null | sed -n 's/^  \([a-z][a-z]*\).*/\1/p' | sort -u
}

# The part of the help that is about VERB: "--option", "--option=", or "--option=a|b|c".
_ptsnapctl_options() {
	command ptsnapctl "${1:-help}" --help 2>/dev/null |
		grep -Eo -- '(^|[^-a-z])--[a-z][a-z0-9:-]*(\[?=[^] ,)]*)?' | sed 's/^[^-]*//; s/\[=/=/' | sort -u
}

_ptsnapctl_ids() {
	command ptsnapctl list --timeout=2s 2>/dev/null | awk '$1 ~ /^[0-9a-z]+-/ { print $1 }'
}

_ptsnapctl() {
	local cur=${COMP_WORDS[COMP_CWORD]} before='' verb='' word i options
	COMPREPLY=()
	# bash makes "--view", "=" and "re" of "--view=re".
	if [ "$cur" = = ]; then
		before=${COMP_WORDS[COMP_CWORD - 1]} cur=
	elif [ "$COMP_CWORD" -ge 2 ] && [ "${COMP_WORDS[COMP_CWORD - 1]}" = = ]; then
		before=${COMP_WORDS[COMP_CWORD - 2]}
	fi
	for ((i = 1; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		if [[ $word != -* && $word != = && ${COMP_WORDS[i - 1]} != = ]]; then
			verb=$word
			break
		fi
	done
	if [ -n "$before" ]; then
		options=$(_ptsnapctl_options "$verb" | sed -n "s/^$before=\([a-z][a-z0-9.|-]*\)$/\1/p" | tr '|' '\n' | awk '!seen[$0]++')
		if [ -n "$options" ]; then
			mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur")
		else
			mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		fi
	elif [[ $cur == -* ]]; then
		options=$(_ptsnapctl_options "$verb" | sed 's/=.*/=/' | sort -u)
		mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur")
		[[ ${#COMPREPLY[@]} -ne 1 || ${COMPREPLY[0]} != *= ]] || compopt -o nospace 2>/dev/null
	elif [ -z "$verb" ]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_ptsnapctl_verbs)" -- "$cur")
	elif [ "$verb" = help ]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_ptsnapctl_verbs)" -- "$cur")
	else
		case $verb in
		list | status | monitor | reload | version | yield | snapshot | check) return ;;
		pin | unpin | delete | fetch) mapfile -t COMPREPLY < <(compgen -W "latest $(_ptsnapctl_ids)" -- "$cur") ;;
		*) mapfile -t COMPREPLY < <(compgen -W "latest $(_ptsnapctl_ids)" -- "$cur"; compgen -f -- "$cur") ;;
		esac
	fi
}
complete -o filenames -F _ptsnapctl ptsnapctl
