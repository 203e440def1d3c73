// Package pttf makes and reads file.perf-sim, the package of the simulator's
// trace files: a gzipped PAX tar that the NEFF carries as the member
// debug_info_pttf.
//
// Discovery, log lines, member fields and the no-files case follow the
// documented perf_sim_package_pass. What that documentation does not say is
// decided here and listed in docs/artifacts.md:
//
//   - members are sorted, with no time and no owner, so that the same traces
//     give the same bytes on every machine; Options.AsFound keeps directory
//     order, times (PAX records of modification, access and change), modes and
//     owner numbers as the documented writer does;
//   - members are named by their base name; Options.PathNames stores the path
//     as it was found, as the documented writer does;
//   - PAX records are written only where a value needs one, so that viewers
//     that know plain ustar only open the package.
package pttf

// FileName is the name of the package in the artifacts directory.
const FileName = "file.perf-sim"
