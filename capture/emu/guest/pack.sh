# Functions for scripts that prepare a guest: its CPUs, its disk, and programs in a folder for it. Sourced.

# Prints FAMILY/MODEL/STEPPING of the CPUs that MODEL names. Status 1: no such model.
cpu_model() { # MODEL
	case $1 in
	broadwell) echo 6/61/4 ;;
	skylake) echo 6/94/3 ;;
	icelake) echo 6/106/6 ;;
	sapphirerapids) echo 6/143/8 ;;
	alderlake) echo 6/151/2 ;;
	sierraforest) echo 6/175/3 ;;
	*) return 1 ;;
	esac
}

# Prints the path of the root file system, which has the packages VM_PACKAGES, too.
root_image_in() { # CACHE
	local sum
	sum=$(cksum <<<"${VM_PACKAGES:-}")
	echo "$1/root${VM_PACKAGES:+-${sum%% *}}.img"
}

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

# Packs an installed ptsnap for the guest: programs, units and what belongs to them, as a tree below
# DIR/recorder whose prefix is /usr, and their libraries in DIR/lib. PLACES: places.sh of the build.
# ROOT: the installation's DESTDIR, or empty.
pack_recorder() { # DIR PLACES ROOT
	local to=$1/recorder root=$3 lib=$1/recorder/usr/lib f
	. "$2" || return 1
	mkdir -p "$to"/usr/{bin,sbin,libexec/ptsnap} "$lib"/{systemd/system,systemd/system-generators,sysusers.d,tmpfiles.d} &&
		cp "$root$sbindir/ptsnapd" "$to/usr/sbin/" &&
		cp "$root$bindir/ptsnapctl" "$to/usr/bin/" &&
		cp "$root$pkglibexecdir"/ptsnap-* "$to/usr/libexec/ptsnap/" &&
		cp "$root$systemdsystemgeneratordir/ptsnap-generator" "$lib/systemd/system-generators/" &&
		cp -r "$root$systemdsystemunitdir"/ptsnap* "$lib/systemd/system/" &&
		cp "$root$sysusersdir/ptsnap.conf" "$lib/sysusers.d/" &&
		cp "$root$tmpfilesdir/ptsnap.conf" "$lib/tmpfiles.d/" &&
		cp -r "$root$vendorconfdir" "$lib/" || return 1
	sed -i -e "s|$sbindir/|/usr/sbin/|g" -e "s|$bindir/|/usr/bin/|g" \
		-e "s|$pkglibexecdir/|/usr/libexec/ptsnap/|g" "$lib"/systemd/system/*.service || return 1
	# ptsnapctl looks for its helpers where they were configured to be.
	[ "$pkglibexecdir" = /usr/libexec/ptsnap ] || {
		mkdir -p "$to${pkglibexecdir%/*}" && ln -s /usr/libexec/ptsnap "$to$pkglibexecdir" || return 1
	}
	mkdir -p "$1/lib" || return 1
	for f in "$to"/usr/*bin/* "$to"/usr/libexec/ptsnap/* "$lib"/systemd/system-generators/*; do
		libraries "$f" | xargs -r cp -L -t "$1/lib/" && strip -g "$f" || return 1
	done
	strip -g "$1"/lib/*
}
