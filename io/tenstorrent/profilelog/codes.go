package profilelog

// Codes of the diagnostics that reading a log can give. docs/tenstorrent.md
// explains each; the names are stable.
const (
	DiagEmptyFile      = "empty-file"             // nothing in the file
	DiagNoRows         = "no-rows"                // header without a row
	diagTruncated      = "truncated-last-line"    // last line ends in the middle of a row
	diagBrokenFile     = "compressed-data-broken" // gzip or zstd data end early or are damaged
	diagClockMissing   = "clock-missing"          // no clock line: nanoseconds cannot be given
	diagClockAssumed   = "clock-assumed"          // "Chip clock is at": a fixed text, not a measurement
	diagClockUnlikely  = "clock-unlikely"         // clock far from the nominal clock of the chip
	diagHeaderRepeated = "sessions-glued"         // a later session was appended to the file
	diagUnknownColumn  = "unknown-column"         // column name that no known version has; ignored
	diagSwapped        = "columns-swapped"        // time and stat value exchanged, undone
	diagRowShort       = "row-short"              // too few fields; row dropped
	diagRowLong        = "row-long"               // too many fields; row dropped
	diagCommaInName    = "comma-in-name"          // too many fields, explained by commas in the zone name
	diagBadNumber      = "bad-number"             // a number column holds something else; row dropped
	diagBadPhase       = "unknown-phase"          // phase text that no version writes; kept as event
	diagLineTooLong    = "line-too-long"          // line above the limit; dropped
	diagNotARow        = "not-a-row"              // a line that is neither row, header nor clock
	diagOutOfOrder     = "rows-out-of-order"      // rows of a lane not in time order; sorted
	DiagTimerWrap      = "timer-wrap"             // 44-bit counter wrapped, undone
	diagUnmatchedStart = "unmatched-start"        // zone start without an end: no duration
	diagUnmatchedEnd   = "unmatched-end"          // zone end without a start
	DiagBufferFull     = "buffer-full"            // a lane filled its marker buffer: later markers of the run were dropped
	diagNoName         = "zone-name-missing"      // start or end of a zone whose id has no name
	diagCollision      = "zone-id-collision"      // one id, several zones: times may be under the wrong name
	diagDevices        = "devices-unaligned"      // several devices: their clocks cannot be compared
)
