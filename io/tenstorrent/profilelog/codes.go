package profilelog

// Codes of the diagnostics that reading a log can give. docs/tenstorrent.md
// explains each; the names are stable.
const (
	DiagEmptyFile      = "empty-file"             // nothing in the file
	DiagNoRows         = "no-rows"                // header without a row
	DiagTruncated      = "truncated-last-line"    // last line ends in the middle of a row
	DiagBrokenFile     = "compressed-data-broken" // gzip or zstd data end early or are damaged
	DiagClockMissing   = "clock-missing"          // no clock line: nanoseconds cannot be given
	DiagClockAssumed   = "clock-assumed"          // "Chip clock is at": a fixed text, not a measurement
	DiagClockUnlikely  = "clock-unlikely"         // clock far from the nominal clock of the chip
	DiagHeaderRepeated = "sessions-glued"         // a later session was appended to the file
	DiagUnknownColumn  = "unknown-column"         // column name that no known version has; ignored
	DiagSwapped        = "columns-swapped"        // time and stat value exchanged, undone
	DiagRowShort       = "row-short"              // too few fields; row dropped
	DiagRowLong        = "row-long"               // too many fields; row dropped
	DiagCommaInName    = "comma-in-name"          // too many fields, explained by commas in the zone name
	DiagBadNumber      = "bad-number"             // a number column holds something else; row dropped
	DiagBadPhase       = "unknown-phase"          // phase text that no version writes; kept as event
	DiagLineTooLong    = "line-too-long"          // line above the limit; dropped
	DiagNotARow        = "not-a-row"              // a line that is neither row, header nor clock
	DiagOutOfOrder     = "rows-out-of-order"      // rows of a lane not in time order; sorted
	DiagTimerWrap      = "timer-wrap"             // 44-bit counter wrapped, undone
	DiagUnmatchedStart = "unmatched-start"        // zone start without an end: no duration
	DiagUnmatchedEnd   = "unmatched-end"          // zone end without a start
	DiagBufferFull     = "buffer-full"            // a lane filled its marker buffer: later markers of the run were dropped
	DiagNoName         = "zone-name-missing"      // start or end of a zone whose id has no name
	DiagCollision      = "zone-id-collision"      // one id, several zones: times may be under the wrong name
	DiagDevices        = "devices-unaligned"      // several devices: their clocks cannot be compared
)
