package zonerecorder

import (
	"fmt"

	"perfsim/components/zonelog"
	"perfsim/io/tenstorrent/profilelog"
)

// Words of the control vector of a core.
const (
	hostEndIndex   = 0 // ..4: words in the DRAM buffer of each processor
	deviceEndIndex = 5 // ..9: words in the L1 buffer of each processor, 0 once pushed
	FWResetH       = 10
	FWResetL       = 11
	dramAddress    = 12
	runCounter     = 13
	nocX           = 14
	nocY           = 15
	flatID         = 16
	coresPerDRAM   = 17
	droppedZones   = 18 // one bit a processor
	done           = 19
	TraceStatus    = 20
	controlWords   = 32
)

// Sizes. The DRAM buffer of a processor holds DefaultPrograms launches that
// record nothing but the guaranteed markers (and two sums, if sums are on).
const (
	sumCount         = 2
	quickPushMarkers = 2
	defaultPrograms  = 1000
	maxRiscs         = 5
	nocAlignment     = 4
)

// quickPushZone is the zone with which a quick push marks itself.
const quickPushZone = "PROFILER-NOC-QUICK-SEND"

// config says how a core records.
type config struct {
	Layout   profilelog.Layout
	Programs int  // launches a DRAM buffer is sized for; 0 means DefaultPrograms
	Sums     bool // room for two sums a launch (DO_SUM): 64,000 bytes in place of 48,000
	Ethernet bool // the core has one processor, ERISC
	// Unlimited lets DRAM buffers grow. The device cannot do that; the
	// simulator profiling itself can.
	Unlimited bool
}

// DRAMWords is the size of the DRAM buffer of one processor.
func (c config) DRAMWords() int {
	n := c.Programs
	if n <= 0 {
		n = defaultPrograms
	}
	markers := profilelog.ProgramIDMarkers + profilelog.GuaranteedMarkers
	if c.Sums {
		markers += sumCount
	}
	return profilelog.MarkerWords * markers * n
}

// risc is one processor: its L1 buffer and its DRAM buffer.
type risc struct {
	core *Core
	id   int
	buf  [profilelog.L1Words]uint32
	w    uint32 // next free word
	open uint32 // words kept for the ends of open scopes

	sums   [sumCount]uint32
	sumIDs [sumCount]uint32
	dram   []uint32

	// Lost counts what the device would not tell: scopes and markers without
	// room, and markers that would have been written behind the buffer.
	LostScopes, LostMarkers, Overruns uint64
}

// Core is one core with its processors and its control vector.
type Core struct {
	cfg     config
	Control [controlWords]uint32
	Riscs   []*risc
	hostID  uint32
	trace   uint32
}

// newCore returns a core at (x, y) with the flat id that its markers carry.
func newCore(cfg config, x, y, flat uint32) *Core {
	c := &Core{cfg: cfg}
	c.Control[nocX], c.Control[nocY], c.Control[flatID], c.Control[coresPerDRAM] = x, y, flat, 1
	c.Control[dramAddress] = 1
	n := maxRiscs
	if cfg.Ethernet {
		n = 1
	}
	for i := range n {
		c.Riscs = append(c.Riscs, &risc{core: c, id: i})
	}
	return c
}

// SetHostID gives the identity of the launches that start from now on: the
// run host id, or the host counter in layouts that have one.
func (c *Core) SetHostID(id uint32) {
	c.hostID = id
	for _, r := range c.Riscs {
		r.identify()
	}
}

// SetTrace gives the trace count of the identity.
func (c *Core) SetTrace(n uint32) { c.trace = n & 0xFFFF }

func (r *risc) identify() {
	c := r.core
	if c.cfg.Layout.HostCounter {
		r.buf[profilelog.WordIDLL] = c.hostID<<16 | c.Control[runCounter]&0xFFFF
	} else {
		r.buf[profilelog.WordIDLL] = c.hostID
	}
}

// mark writes a marker at a word of the buffer.
func (r *risc) mark(at, timer uint32, time uint64) {
	if at+profilelog.MarkerWords > profilelog.L1Words {
		// The device would write into the buffer of the next processor.
		r.Overruns++
		return
	}
	r.buf[at], r.buf[at+1] = r.core.cfg.Layout.Encode(timer, time)
}

// endID turns the timer id of a start into that of its end.
func (r *risc) endID(timer uint32) uint32 {
	s := r.core.cfg.Layout.PacketShift()
	return timer&(1<<s-1) | uint32(zonelog.MarkerEnd)<<s
}

func (r *risc) packet(t zonelog.MarkerType, id uint32) uint32 {
	s := r.core.cfg.Layout.PacketShift()
	return id&(1<<s-1) | uint32(t)<<s
}

// init prepares the buffer for a launch. BRISC (ERISC) does it for all.
func (r *risc) init() {
	r.w, r.open = profilelog.CustomWord, 0
	r.sums, r.sumIDs = [sumCount]uint32{}, [sumCount]uint32{}
	if r.id != 0 {
		return
	}
	c := r.core
	c.Control[done] = 0
	for _, x := range c.Riscs {
		if c.Control[runCounter] == 0 {
			clear(x.buf[:profilelog.WordFWStart])
		}
		for i := profilelog.WordFWStart; i < profilelog.CustomWord; i++ {
			x.buf[i] = profilelog.ValidBit
		}
		x.identify()
	}
}

// BeginFW opens the firmware zone in its guaranteed slot. On the first
// processor this starts a launch.
func (r *risc) BeginFW(id uint16, time uint64) {
	r.init()
	r.mark(profilelog.WordFWStart, uint32(id), time)
}

// BeginKernel opens the kernel zone in its guaranteed slot.
func (r *risc) BeginKernel(id uint16, time uint64) {
	r.mark(profilelog.WordKernelStart, uint32(id), time)
}

// EndKernel closes the kernel zone.
func (r *risc) EndKernel(id uint16, time uint64) {
	r.mark(profilelog.WordKernelEnd, r.endID(uint32(id)), time)
}

// EndFW closes the firmware zone. On the first processor this ends the
// launch and pushes the buffers of all processors to DRAM.
func (r *risc) EndFW(id uint16, time uint64) {
	r.mark(profilelog.WordFWEnd, r.endID(uint32(id)), time)
	r.finish()
}

// scope is an open zone.
type scope struct {
	r        *risc
	id       uint32
	marked   bool
	dispatch bool
}

// Open opens a zone. It is written only while room remains for the ends of
// all open zones; a zone without room vanishes as a whole.
func (r *risc) Open(id uint16, time uint64) scope {
	s := scope{r: r, id: uint32(id)}
	if r.w < profilelog.L1Words-r.open {
		r.begin(&s, time)
	} else {
		r.LostScopes++
	}
	return s
}

// OpenDispatch opens a zone on a dispatch core, which keeps room for a quick
// push and pushes when the buffer nears its end.
func (r *risc) OpenDispatch(id uint16, time uint64) scope {
	s := scope{r: r, id: uint32(id), dispatch: true}
	if r.w < profilelog.L1Words-r.open-quickPushMarkers*profilelog.MarkerWords {
		r.begin(&s, time)
	} else {
		r.LostScopes++
	}
	return s
}

func (r *risc) begin(s *scope, time uint64) {
	r.open += profilelog.MarkerWords
	s.marked = true
	r.mark(r.w, s.id, time)
	r.w += profilelog.MarkerWords
}

// Close closes a zone.
func (s *scope) Close(time uint64) {
	r := s.r
	if s.marked {
		r.mark(r.w, r.endID(s.id), time)
		r.w += profilelog.MarkerWords
		s.marked = false
		r.open -= profilelog.MarkerWords
	}
	if s.dispatch && r.w >= profilelog.L1Words-quickPushMarkers*profilelog.MarkerWords {
		r.QuickPush(time)
	}
}

// Event writes a time stamp without a zone, where there is room.
func (r *risc) Event(id uint16, time uint64) bool {
	return r.stamp(zonelog.MarkerEvent, id, time)
}

// Data writes a time stamp with 64 bits (one value) or 128 bits (two) of
// data, where there is room for all of it.
func (r *risc) Data(id uint16, time uint64, v ...uint64) bool {
	t := zonelog.MarkerData
	if len(v) == 2 {
		t = zonelog.MarkerData16
	}
	return r.stamp(t, id, time, v...)
}

func (r *risc) stamp(t zonelog.MarkerType, id uint16, time uint64, v ...uint64) bool {
	need := uint32(profilelog.MarkerWords * (1 + len(v)))
	if r.w+need > profilelog.L1Words-r.open {
		r.LostMarkers++
		return false
	}
	r.mark(r.w, r.packet(t, uint32(id)), time)
	r.w += profilelog.MarkerWords
	for _, x := range v {
		r.buf[r.w], r.buf[r.w+1] = uint32(x>>32), uint32(x)
		r.w += profilelog.MarkerWords
	}
	return true
}

// Sum adds cycles to one of the two sums of the launch.
func (r *risc) Sum(index int, id uint16, cycles uint64) {
	r.sumIDs[index] = uint32(id)
	r.sums[index] += uint32(cycles)
}

// finish ends the recording of this processor; the first one then pushes.
func (r *risc) finish() {
	for i, s := range r.sums {
		if s > 0 && r.w < profilelog.L1Words {
			hi, _ := r.core.cfg.Layout.Encode(r.packet(zonelog.MarkerTotal, r.sumIDs[i]), 0)
			r.buf[r.w], r.buf[r.w+1] = hi, s
			r.w += profilelog.MarkerWords
		}
	}
	for i := uint32(0); i < r.w%nocAlignment; i++ { // the condition moves with w: one marker at most
		if r.w < profilelog.L1Words {
			r.buf[r.w], r.buf[r.w+1] = profilelog.ValidBit, 0
			r.w += profilelog.MarkerWords
		}
	}
	c := r.core
	c.Control[deviceEndIndex+r.id] = min(r.w, profilelog.L1Words)
	if r.id == 0 {
		c.push()
	}
}

// push copies the buffers of all processors to DRAM. A launch that does not
// fit is dropped; of the first launch at least the guaranteed markers go.
func (c *Core) push() {
	if c.Control[done] == 1 {
		return
	}
	for i, r := range c.Riscs {
		r.identityWord()
		words := c.Control[deviceEndIndex+i]
		if words == 0 {
			continue
		}
		end := words + c.Control[hostEndIndex+i]
		switch {
		case c.cfg.Unlimited || int(end) <= c.cfg.DRAMWords():
			r.dram = append(r.dram[:c.Control[hostEndIndex+i]], r.buf[:words]...)
			c.Control[hostEndIndex+i] = end
		case c.Control[runCounter] < 1:
			r.dram = append(r.dram[:0], r.buf[:profilelog.CustomWord]...)
			c.drop(i)
		default:
			c.drop(i)
		}
		c.Control[deviceEndIndex+i] = 0
	}
	c.Control[runCounter]++
	c.Control[done] = 1
}

func (c *Core) drop(risc int) { c.Control[droppedZones] |= 1 << risc }

func (r *risc) identityWord() {
	c := r.core
	r.buf[profilelog.WordIDLH] = uint32(r.id)&7 | c.Control[flatID]&0xFF<<3 | c.trace<<11
}

// QuickPush sends the buffer of one processor to DRAM in the middle of a
// launch and starts it anew, with a zone around the push.
func (r *risc) QuickPush(time uint64) {
	c := r.core
	id := uint32(quickPushID)
	r.mark(r.w, id, time)
	r.w += profilelog.MarkerWords
	r.identityWord()
	r.mark(r.w, r.endID(id), time)
	r.w += profilelog.MarkerWords
	words := min(r.w, profilelog.L1Words)
	end := c.Control[hostEndIndex+r.id] + words
	if c.cfg.Unlimited || int(end) <= c.cfg.DRAMWords() {
		r.dram = append(r.dram[:c.Control[hostEndIndex+r.id]], r.buf[:words]...)
		c.Control[hostEndIndex+r.id] = end
	} else {
		c.drop(r.id)
	}
	r.w = profilelog.CustomWord
}

// quickPushID is the hash of the push zone as the host resolves it here.
var quickPushID = zonelog.ZoneHash16(quickPushText)

// quickPushText is the text whose hash identifies the push zone.
const quickPushText = quickPushZone + ",./kernel_profiler.hpp,1,KERNEL_PROFILER"

// L1 returns the words of the L1 buffer written so far.
func (r *risc) L1() []uint32 { return r.buf[:min(r.w, profilelog.L1Words)] }

// Room is the number of further scopes that fit with none inside another.
func (r *risc) Room() int {
	free := int(profilelog.L1Words) - int(r.open) - int(r.w)
	return max(0, (free+profilelog.MarkerWords-1)/(2*profilelog.MarkerWords))
}

// DRAM returns the words that one processor has pushed.
func (r *risc) DRAM() []uint32 { return r.dram }

// Dropped tells whether the DRAM buffer of some processor was full.
func (c *Core) Dropped() bool { return c.Control[droppedZones] != 0 }

// HostRead empties the DRAM buffers, as the host does when it dumps results:
// the words read, by processor. The device goes on with empty buffers.
func (c *Core) HostRead() [][]uint32 {
	out := make([][]uint32, len(c.Riscs))
	for i, r := range c.Riscs {
		out[i] = append([]uint32(nil), r.dram...)
		r.dram = r.dram[:0]
		c.Control[hostEndIndex+i] = 0
	}
	return out
}

// String says where the core is.
func (c *Core) String() string {
	return fmt.Sprintf("core %d,%d (flat %d)", c.Control[nocX], c.Control[nocY], c.Control[flatID])
}
