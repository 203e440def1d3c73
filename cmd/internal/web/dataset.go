// Package web serves the timelines of a program as a local page, and writes the
// same page as one file to mail around. It knows blocks of lanes with events,
// not modules: package cli fills them from a simulation.
package web

// Program is the content of a page: the blocks of a module, one at a time.
type Program struct {
	Title  string
	Facts  []Fact  // of the whole program, as `run` prints them
	Blocks []Block // most time first
	First  int     // the block that is shown at first
	// Memory returns the peaks of the memories. Computed when asked for; optional.
	Memory func() ([]Memory, error)
	// Open makes the timelines of a block. It is called once a block.
	Open func(block int) (*Dataset, error)
}

// Block is a block of a program.
type Block struct {
	Name   string `json:"name"`
	Runs   uint64 `json:"runs"`
	NS     uint64 `json:"ns"`    // of one run
	Total  uint64 `json:"total"` // ns of all runs
	Events int    `json:"events"`
}

// Memory is the peak of one memory.
type Memory struct {
	Name    string   `json:"name"`
	Unit    string   `json:"unit"`
	Size    uint64   `json:"size"`    // what the machine has, 0 where that is not known
	Peak    uint64   `json:"peak"`    // most in use
	AtMost  bool     `json:"at_most"` // the peak is an upper bound
	At      uint64   `json:"at"`      // ns, blocks one after the other
	Absent  string   `json:"absent,omitempty"`
	Tensors []Tensor `json:"tensors"` // at the peak, largest first
	Left    int      `json:"left"`    // tensors that are not listed
}

// Tensor is a tensor in a memory.
type Tensor struct {
	Name     string `json:"name"`
	Bytes    uint64 `json:"bytes"`
	From     uint64 `json:"from"` // ns
	To       uint64 `json:"to"`
	Kind     string `json:"kind"`
	Operator string `json:"operator"`
}

// Dataset is one block.
type Dataset struct {
	Facts    []Fact // of the block: name and value
	Sections []Section
	// Kinds are the names of the event kinds (opcodes); an event's colour
	// follows from its kind.
	Kinds []string
	// Quiet marks, by kind, what is drawn pale: waiting and bookkeeping rather
	// than work. Optional.
	Quiet []bool
	// Causes are the names of why a row was idle before an event.
	Causes []string
	Loops  []LoopInfo
	// Work is the executions and the busy time of the first section by kind, with
	// all iterations of loops; nil where the events as drawn are all there is.
	Work []Work
	// Groups are the scopes of the block as a tree, parents before children;
	// Classes names what their times are of. Computed when asked for.
	Groups  func() []Group
	Classes []string
	// Counters are values over time below the lanes, or the reason why there are
	// none. Computed when asked for.
	Counters func() ([]Counter, string)
	// Attribute works out what held every event and the critical path; the
	// function that it returns sets Cause and Critical of the rows. Optional.
	Attribute func() (set func(), err error)
	// Detail describes one event; Search finds events whose name holds the
	// text, at most limit of them. Both are called by several goroutines.
	Detail func(section int, id uint32) (Detail, bool)
	Search func(text string, limit int) []Hit
}

// Fact is a named value for people.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Section is one run: rows that share a time axis.
type Section struct {
	Name string
	Span uint64 // ns
	Rows []Row
	// Folded sections are not shown until asked for.
	Folded bool
	// Fill makes the rows with their events; those of Rows have none then. Rows
	// that are parts of others follow the others. It is nil where Rows are whole.
	Fill func() []Row
}

// Row is one lane: events that ascend and do not overlap.
type Row struct {
	Name string
	// Busy is the busy time of the lane in one run of the block, in ns, as the
	// commands print it.
	Busy uint64
	// Parent is the row that this one is a part of, plus one; 0 for none. Parts
	// are hidden until the row is unfolded.
	Parent int
	Start  []uint64 // ns
	End    []uint64
	ID     []uint32
	Kind   []uint16
	// Cause is why the row was idle before the event, plus one; 0 for not
	// known. Optional.
	Cause []uint8
	// Critical marks the events on the critical path. Optional.
	Critical []bool
	// Share is the part of a box of several events that is busy, 0 to 255; nil
	// where every event is one.
	Share []uint8
	// Loops are the loops that the lane has a part in, outer before inner.
	Loops []Loop

	busy []uint64 // by blockOf events: the busy time of the events before
}

// Loop is the part of one lane in a loop that repeats. The events of the row
// show its last iteration.
type Loop struct {
	Loop  int    // index in Dataset.Loops
	Start uint64 // of the first iteration, ns
	Last  uint64 // of the last iteration
	End   uint64
	Busy  uint64 // of all iterations, ns
	Kind  uint16 // what the lane does most in it
	Depth int    // loops around it
}

// Work is the events of a kind.
type Work struct {
	Kind   int    `json:"kind"`
	Events int    `json:"events"`
	Time   uint64 `json:"time"` // ns
}

// LoopInfo is a loop.
type LoopInfo struct {
	Name  string `json:"name"`
	Trips uint64 `json:"trips"`
	Start uint64 `json:"start"` // of the last iteration, ns
	End   uint64 `json:"end"`
}

// Group is a part of the program: a scope, an operator or a source line.
type Group struct {
	Name   string   `json:"name"`
	Parent int      `json:"parent"`  // index, -1 for none
	Path   string   `json:"path"`    // what to search for to list its events
	Events uint64   `json:"events"`  // executions of its instructions
	Busy   []uint64 `json:"busy"`    // ns by class
	OnPath uint64   `json:"on_path"` // ns of the critical path that are its own
	Bound  string   `json:"bound"`   // of most of that time
	FLOPs  uint64   `json:"flops"`
	Bytes  uint64   `json:"bytes"` // of device memory
}

// Counter is a value over time: it holds until the next time.
type Counter struct {
	Name  string    `json:"name"`
	Unit  string    `json:"unit"`
	Most  float64   `json:"most"` // what the machine has, 0 where that is not known
	Time  []uint64  `json:"time"`
	Value []float64 `json:"value"`
}

// Link is a dependency of the event shown.
type Link struct {
	ID    uint32 `json:"id"`
	Row   int    `json:"row"`
	Name  string `json:"name"`
	Start uint64 `json:"start"`
	End   uint64 `json:"end"`
	Kind  string `json:"kind"`
	Gap   int64  `json:"gap"` // ns between the end of the one and the start of the other
	Binds bool   `json:"binds"`
}

// Other is an event in another section.
type Other struct {
	Section int    `json:"section"`
	Start   uint64 `json:"start"`
	End     uint64 `json:"end"`
}

// Detail is what the page shows of an event.
type Detail struct {
	ID     uint32 `json:"id"`
	Row    int    `json:"row"`
	Name   string `json:"name"`
	Start  uint64 `json:"start"`
	End    uint64 `json:"end"`
	Facts  []Fact `json:"facts"`
	Source string `json:"source,omitempty"` // file:line
	Preds  []Link `json:"preds"`
	Succs  []Link `json:"succs"`
	// Others are the same event in the other sections.
	Others []Other `json:"others,omitempty"`
}

// Hit is an event that a search found.
type Hit struct {
	Section int    `json:"section"`
	Row     int    `json:"row"`
	ID      uint32 `json:"id"`
	Name    string `json:"name"`
	Start   uint64 `json:"start"`
	End     uint64 `json:"end"`
}

// events returns how many events the dataset has.
func (d *Dataset) events() int {
	n := 0
	for _, s := range d.Sections {
		for _, r := range s.Rows {
			if r.Parent == 0 {
				n += len(r.Start)
			}
		}
	}
	return n
}
