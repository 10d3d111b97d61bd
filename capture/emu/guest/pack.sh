# Functions that put programs into a folder for the VM. Sourced.

# Prints the libraries of PROGRAM, except the C library: the guest has its own.
libraries() { # PROGRAM
	ldd "$1" 2>/dev/null | awk '$2 == "=>" && $3 ~ /^\// && $3 !~ /\/libc\.so/ { print $3 }'
}

pack_programs() { # DIR PROGRAM...
	local dir=$1 f
	shift
	mkdir -p "$dir/lib" || return 1
	for f; do
		cp -L "$f" "$dir/" || return 1
		libraries "$f" | xargs -r cp -L -t "$dir/lib/"
	done
}
