package catapult

import (
	"strconv"

	"perfsim/components"
	"perfsim/io/format"
)

// Short texts are copied sixteen or sixty-four bytes at a time whatever their
// length: the copy has no branch and what it writes too much is overwritten by
// what follows. fragment keeps its length in its last byte.
type fragment [64]byte

func makeFragment(text string) (f fragment) {
	if len(text) >= len(f) {
		panic("a fragment of " + strconv.Itoa(len(text)) + " bytes: " + text)
	}
	copy(f[:], text)
	f[len(f)-1] = byte(len(text))
	return f
}

func (f *fragment) len() int { return int(f[len(f)-1]) }

// put writes f to o at n and returns where its text ends.
func (f *fragment) put(o []byte, n int) int {
	*(*fragment)(o[n:]) = *f
	return n + f.len()
}

// short makes the texts of at most sixteen bytes, whose lengths are known
// where they are used.
func short(text string) (f [16]byte) {
	if len(text) > len(f) {
		panic("a short text of " + strconv.Itoa(len(text)) + " bytes: " + text)
	}
	copy(f[:], text)
	return f
}

const (
	nameOpen    = `,{"name":"`
	nameOpenRow = `,{"name":"I-` // what Module.InstrName says
	tsText      = `","ph":"X","ts":`
	durText     = `,"dur":`
	birName     = `,"bir_name":"`
	birNameRow  = `,"bir_name":"I-`
	latencyText = `,"latency_ns":`
	banksText   = `,"psum_banks":[`
	barrierText = `,"engine":"ALL"`
	depsText    = `,"deps":[`
	depOpen     = `{"bir_id":`
	depNext     = `},{"bir_id":`
	eventEnd    = "]}}\n"
	arrowTs     = `,"ts":`
)

var (
	shortNameOpen    = short(nameOpen)
	shortNameOpenRow = short(nameOpenRow)
	shortTs          = short(tsText)
	shortDur         = short(durText)
	shortBirName     = short(birName)
	shortBirNameRow  = short(birNameRow)
	shortLatency     = short(latencyText)
	shortBanks       = short(banksText)
	shortDeps        = short(depsText)
	shortDepOpen     = short(depOpen)
	shortDepNext     = short(depNext)
	shortEventEnd    = short(eventEnd)
	shortArrowTs     = short(arrowTs)
)

// classText names the classes of edges in dependencies.
var classText = [components.NumClasses]string{
	components.ClassFlow:    "Flow",
	components.ClassOutput:  "Output",
	components.ClassOrdered: "Ordered",
	components.ClassAnti:    "Anti",
}

// unhonoured follows the end of a dependency that the run left out.
const unhonoured = `,"honoured":false`

// fragments are the texts that stand between the numbers of a trace.
type fragments struct {
	// lane has, by lane, what stands between the duration and the id.
	lane []fragment
	// dep has, by lane of the predecessor and class, what stands between its
	// id and its end; the last row is for predecessors on the same lane.
	dep [][components.NumClasses]fragment
	// opcode has what stands between the name and the source location; bare
	// what stands between the name and the dependencies of an instruction of
	// which no more is known.
	opcode, bare [][]byte
	// starts and finishes begin the two records of an arrow, by class; from
	// and to end them, by lane.
	starts, finishes [components.NumClasses]fragment
	from, to         []fragment
}

func makeFragments(m *components.Module, tids []int) *fragments {
	f := &fragments{}
	for l, tid := range tids {
		thread := `,"pid":0,"tid":` + strconv.Itoa(tid)
		f.lane = append(f.lane, makeFragment(thread+`,"args":{"bir_id":`))
		f.from = append(f.from, makeFragment(thread+"}\n"))
		f.to = append(f.to, makeFragment(thread+`,"bp":"e"}`+"\n"))
		f.dep = append(f.dep, depFragments(`,"engine":"Engine`+strconv.Itoa(l)+`"`))
	}
	f.dep = append(f.dep, depFragments(""))
	for c := range f.starts {
		open := `,{"name":"` + components.KindOfClass(uint8(c)).String() + `","cat":"dep","ph":"`
		f.starts[c], f.finishes[c] = makeFragment(open+`s","id":`), makeFragment(open+`f","id":`)
	}
	for op := range m.NumOpcodes() {
		name := m.OpcodeName(components.Opcode(op))
		b := append([]byte(nil), `","opcode":`...)
		b = format.AppendJSONString(b, name)
		b = append(b, `,"nki_source_location":`...)
		f.opcode = append(f.opcode, b[:len(b):len(b)])
		b = append(b[:len(b):len(b)], `"","input_shapes":"","output_shapes":"","input_access_patterns":"","output_access_patterns":"","inst_dump":"`...)
		b = format.AppendJSONText(b, name)
		f.bare = append(f.bare, append(b, '"'))
	}
	return f
}

func depFragments(engine string) (f [components.NumClasses]fragment) {
	for c := range f {
		f[c] = makeFragment(engine + `,"edge_type":"` + classText[c] + `","end_time":`)
	}
	return f
}
