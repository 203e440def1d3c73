// Package noctrace reads the NoC traces of Tenstorrent's device profiler
// (noc_trace_dev<d>_<op>_ID<run>.json): what every processor sent over the two
// networks on chip and over Ethernet, and how long it waited for it.
package noctrace
