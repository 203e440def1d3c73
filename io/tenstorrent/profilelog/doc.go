// Package profilelog reads and writes the files of the Tenstorrent device
// profiler: profile_log_device.csv in every version from V0 (2023-02) to V12
// (2026-09), zone_src_locations.log, the ops tables, and raw dumps of the
// profiler buffers in L1 and DRAM.
//
// A log is read in one streaming pass: blocks of whole lines are parsed by
// as many workers as there are processors and joined in file order, so the
// result does not depend on the number of workers. Columns are found by
// header name, never by position, because two versions of 13 columns differ
// only by names. Trouble in a row is counted under a named diagnostic and
// the rest of the log is used.
package profilelog
