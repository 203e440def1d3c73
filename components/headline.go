package components

// The codes of notes that stand next to the predicted latency, because the
// figure means something else, or less, without them.
const (
	NoteEstimated   = "estimated-operators" // operators without a lowering rule
	NoteAllDevices  = "all-devices"         // a module that is not partitioned, simulated whole
	NotePartitioned = "partitioned"         // one device's share of a module that was not partitioned
	NoteNoDurations = "no-durations"        // nothing in the input says how long some work takes
	NoteNoLatency   = "no-latency"          // nothing has a duration: there is no latency
	NoteRoofline    = "roofline"            // durations derived from operations and bytes
	// NoteEstimatedTransfers: communications whose durations the machine gives.
	NoteEstimatedTransfers = "estimated-communication"
	NoteScaled             = "scaled-constants"  // the machine's constants are another's, scaled
	NoteInferred           = "inferred-records"  // a measured profile lost records
	NoteLostIDs            = "lost-record"       // dependencies on records that are not there
	noteFreedWaits         = "waits-without-end" // waits that no instruction signals

	// Kinds of kernels whose predictions were measured far off.
	NoteTinyRows         = "kernel-tiny-rows"         // limited by transfers of single elements
	NoteRepeatedLoads    = "kernel-repeated-loads"    // limited by loads of the same bytes
	NoteTinyInstructions = "kernel-tiny-instructions" // limited by instructions of a few elements
	NoteClockUndecided   = "kernel-clock-undecided"   // limited by matmuls on so few rows that the PE's clock keeps any rate
	NoteSpills           = "nki-spill"                // tiles that do not fit on chip
)

// The codes of notes that costs leave.
const (
	NoteDefaultCost = "default-cost" // opcodes without a cost of their own
	NoteInlineAsm   = "inline-asm"   // a latency that the instruction brings
)

// The codes of notes that placement leaves.
const (
	NoteClockPhase = "clock-phase" // what the start of the clock's windows leaves open
	NoteNoRunB     = "no-run-b"
)

// OfCosts reports whether the note is about how instructions got their costs.
func (n Note) OfCosts() bool { return n.Code == NoteDefaultCost || n.Code == NoteInlineAsm }

// OfPrediction reports whether the note came with a prediction of the module
// rather than with the module.
func (n Note) OfPrediction() bool {
	switch n.Code {
	case NoteScaled, NoteClockPhase, NoteNoRunB, noteFreedWaits, NoteTinyRows, NoteRepeatedLoads, NoteTinyInstructions, NoteClockUndecided:
		return true
	}
	return n.OfCosts()
}

// Headline reports whether the note is printed next to the latency.
func (n Note) Headline() bool {
	switch n.Code {
	case NoteEstimated, NoteAllDevices, NotePartitioned, NoteNoDurations, NoteNoLatency, NoteRoofline, NoteScaled, NoteInferred, NoteLostIDs, noteFreedWaits,
		NoteTinyRows, NoteRepeatedLoads, NoteTinyInstructions, NoteClockUndecided, NoteSpills:
		return true
	}
	return false
}
