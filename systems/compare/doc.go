// Package compare compares two timelines: a prediction with a measurement, two
// predictions, or two measurements, of one program or of two that are alike.
//
// Instructions are matched by the input's ids, by name or by their order on
// each engine. The timelines are laid over one another at the start of the
// kernel's own work, which for a measured profile is behind a preamble of the
// runtime that no program determines. Positive differences mean that B is
// later or longer than A.
package compare
