#!/usr/bin/env bash
# Builds the simulators that `perfsim bench self --peers OUT` measures perfsim
# against, from source trees of the user's. Debian: g++ gcc libgraphviz-dev.
#
#   bench/self/peers.sh OUT LOGGOPSIM-SOURCE [ATLAHS-SOURCE]
#
# Each source is a folder that holds, at any depth, LogGOPSim.cpp and
# txt2bin.cpp with what they include.
set -euo pipefail
if [ $# -lt 2 ] || [ $# -gt 3 ]; then
	sed -n '2,8s/^# \{0,1\}//p' "$0" >&2
	exit 2
fi
mkdir -p "$1"
out=$(cd "$1" && pwd)
build() { # NAME SOURCE: the simulator of a tree as OUT/NAME
	local main dir tmp
	main=$(find "$2" -name LogGOPSim.cpp -print -quit)
	[ -n "$main" ] || { echo "$2: no LogGOPSim.cpp in this folder" >&2; exit 1; }
	dir=$(dirname "$main")
	tmp=$(mktemp -d)
	cp -r "$dir/." "$tmp/"
	(
		cd "$tmp"
		gcc -O3 -w -c loggopsim_cmdline.c txt2bin_cmdline.c
		g++ -std=c++11 -O3 -w -I/usr/include/graphviz LogGOPSim.cpp loggopsim_cmdline.o -o "$out/$1" -lcgraph
		[ -x "$out/txt2bin" ] || g++ -O3 -w txt2bin.cpp txt2bin_cmdline.o -o "$out/txt2bin"
	)
	rm -rf "$tmp"
}
build LogGOPSim "$2"
if [ $# -eq 3 ]; then
	build ATLAHS "$3"
fi
ls -l "$out"
