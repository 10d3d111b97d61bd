# Completion of ptsnapctl for bash. Verbs, options and values are those of `ptsnapctl --help', and
# IDs those of `ptsnapctl list', so that this file need not change with the program.

# Verbs, one a line.
_ptsnapctl_verbs() {
	command ptsnapctl --help 2>/dev/null | sed -n 's/^  \([a-z][a-z]*\).*/\1/p' | sort -u
}

# The part of the help that is about VERB: "--option", "--option=", or "--option=a|b|c".
_ptsnapctl_options() {
	command ptsnapctl "${1:-help}" --help 2>/dev/null | sed '/^Exit status/,$d' |
		grep -Eo -- '(^|[^-a-z])--[a-z][a-z0-9:-]*(\[?=[^] ,)]*)?' | sed 's/^[^-]*//; s/\[=/=/' | sort -u
}

# IDs of the recorder whose socket the words name.
_ptsnapctl_ids() {
	local i socket=()
	for ((i = 1; i < ${#COMP_WORDS[@]}; i++)); do
		if [[ ${COMP_WORDS[i]} == --socket ]]; then
			[[ ${COMP_WORDS[i + 1]-} != = ]] || i=$((i + 1))
			socket=(--socket="${COMP_WORDS[i + 1]-}")
		fi
	done
	command ptsnapctl list --timeout=2s "${socket[@]}" 2>/dev/null | awk '$1 ~ /^[0-9a-z]+-/ { print $1 }'
}

# Names of the triggers of the same recorder, for those who may list them.
_ptsnapctl_triggers() {
	local i socket=()
	for ((i = 1; i < ${#COMP_WORDS[@]}; i++)); do
		if [[ ${COMP_WORDS[i]} == --socket ]]; then
			[[ ${COMP_WORDS[i + 1]-} != = ]] || i=$((i + 1))
			socket=(--socket="${COMP_WORDS[i + 1]-}")
		fi
	done
	command ptsnapctl trigger list --timeout=2s "${socket[@]}" 2>/dev/null | awk 'NR > 1 { print $1 }'
}

# Answers for `trigger': the sub-command, then names.
_ptsnapctl_complete_trigger() {
	local cur=$1 word sub=
	for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
		case $word in list | add | remove | test) sub=$word ;; esac
	done
	case $sub in
	'') mapfile -t COMPREPLY < <(compgen -W "list add remove test" -- "$cur") ;;
	remove | test) mapfile -t COMPREPLY < <(compgen -W "$(_ptsnapctl_triggers)" -- "$cur") ;;
	esac
}

# The value of OPTION of VERB, as the help has it: FILE, N, or a|b|c.
_ptsnapctl_value() {
	if [ "$2" = -o ]; then
		echo FILE
	else
		_ptsnapctl_options "$1" | sed -n "s/^$2=\(..*\)$/\1/p"
	fi
}

# Answers for a value KIND that begins like CUR: words, IDs, and files.
_ptsnapctl_complete_value() {
	local kind=$1 cur=$2 words
	words=$(tr '|' '\n' <<<"$kind" | grep -x '[a-z][a-z0-9.-]*' | awk '!seen[$0]++')
	[[ $kind != *ID* ]] || words="$words $(_ptsnapctl_ids)"
	mapfile -t COMPREPLY < <(
		compgen -W "$words" -- "$cur"
		[[ $kind != *FILE* && $kind != *PATH* && $kind != *DIR* && $kind != *OUT* && $kind != *PAGE* ]] ||
			compgen -f -- "$cur"
	)
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
		if [[ $word == --socket || $word == --timeout ]]; then
			[[ ${COMP_WORDS[i + 1]-} != = ]] || i=$((i + 1))
			i=$((i + 1)) # its value
		elif [[ $word != -* && $word != = && ${COMP_WORDS[i - 1]} != = ]]; then
			verb=$word
			break
		fi
	done
	# "-o FILE" and "--baseline ID" have their values as words of their own; --json has none.
	word=${COMP_WORDS[COMP_CWORD - 1]-}
	if [[ -z $before && $cur != -* && $word == -* && $word != --json && -n $(_ptsnapctl_value "$verb" "$word") ]]; then
		before=$word
	fi
	if [ -n "$before" ]; then
		_ptsnapctl_complete_value "$(_ptsnapctl_value "$verb" "$before" | paste -sd '|' -)" "$cur"
	elif [[ $cur == -* ]]; then
		options=$(_ptsnapctl_options "$verb" | sed 's/=.*/=/' | sort -u)
		mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur")
		[[ ${#COMPREPLY[@]} -ne 1 || ${COMPREPLY[0]} != *= ]] || compopt -o nospace 2>/dev/null
	elif [[ -z $verb || $verb == help ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_ptsnapctl_verbs)" -- "$cur")
	else
		case $verb in
		trigger) _ptsnapctl_complete_trigger "$cur" ;;
		list | status | monitor | reload | version | yield | snapshot | check) return ;;
		unpin | delete) mapfile -t COMPREPLY < <(compgen -W "$(_ptsnapctl_ids)" -- "$cur") ;;
		pin | fetch) mapfile -t COMPREPLY < <(compgen -W "latest $(_ptsnapctl_ids)" -- "$cur") ;;
		*) mapfile -t COMPREPLY < <(compgen -W "latest $(_ptsnapctl_ids)" -- "$cur"; compgen -f -- "$cur") ;;
		esac
	fi
}
complete -o filenames -F _ptsnapctl ptsnapctl
