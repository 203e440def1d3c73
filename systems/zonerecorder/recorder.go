package zonerecorder

import (
	"perfsim/components/zonelog"
	"perfsim/io/tenstorrent/profilelog"
)

// layout is the bit layout of the markers.
var layout = profilelog.LayoutClassic

// Sizes. The DRAM buffer of a processor holds 1,000 launches that record
// nothing but the guaranteed markers.
const (
	quickPushWords = 2 * profilelog.MarkerWords // what a quick push writes
	dramWords      = 1000 * profilelog.MarkerWords * (profilelog.ProgramIDMarkers + profilelog.GuaranteedMarkers)
	nocAlignment   = 4
)

// processor is the only processor of a core: its L1 buffer and its DRAM buffer.
type processor struct {
	flat   uint32 // id of the core that the markers carry
	hostID uint32 // identity of the launches that start from now on

	buf  [profilelog.L1Words]uint32
	w    uint32 // next free word
	open uint32 // words kept for the ends of open scopes

	dram       []uint32
	dropped    bool   // the DRAM buffer was full
	lostScopes uint64 // scopes without room
}

// mark writes a marker at the next free word; behind the buffer it writes
// nothing.
func (p *processor) mark(timer uint32, time uint64) {
	p.markAt(p.w, timer, time)
	p.w += profilelog.MarkerWords
}

func (p *processor) markAt(at, timer uint32, time uint64) {
	if at+profilelog.MarkerWords <= profilelog.L1Words {
		p.buf[at], p.buf[at+1] = layout.Encode(timer, time)
	}
}

// endID turns the id of a zone into the timer id of its end.
func endID(id uint32) uint32 {
	return id | uint32(zonelog.MarkerEnd)<<layout.PacketShift()
}

// BeginFW starts a launch and opens the firmware zone in its guaranteed slot.
func (p *processor) BeginFW(id uint16, time uint64) {
	p.w, p.open = profilelog.CustomWord, 0
	for i := profilelog.WordFWStart; i < profilelog.CustomWord; i++ {
		p.buf[i] = profilelog.ValidBit
	}
	p.buf[profilelog.WordIDLH] = p.flat & 0xFF << 3
	p.buf[profilelog.WordIDLL] = p.hostID
	p.markAt(profilelog.WordFWStart, uint32(id), time)
}

// BeginKernel opens the kernel zone in its guaranteed slot.
func (p *processor) BeginKernel(id uint16, time uint64) {
	p.markAt(profilelog.WordKernelStart, uint32(id), time)
}

// EndKernel closes the kernel zone.
func (p *processor) EndKernel(id uint16, time uint64) {
	p.markAt(profilelog.WordKernelEnd, endID(uint32(id)), time)
}

// EndFW closes the firmware zone, ends the launch and pushes the buffer.
func (p *processor) EndFW(id uint16, time uint64) {
	p.markAt(profilelog.WordFWEnd, endID(uint32(id)), time)
	for i := uint32(0); i < p.w%nocAlignment; i++ { // the condition moves with w: one marker at most
		if p.w < profilelog.L1Words {
			p.buf[p.w], p.buf[p.w+1] = profilelog.ValidBit, 0
			p.w += profilelog.MarkerWords
		}
	}
	p.push()
}

// push copies the buffer to DRAM; what does not fit is dropped.
func (p *processor) push() {
	words := p.buf[:min(p.w, profilelog.L1Words)]
	if len(p.dram)+len(words) > dramWords {
		p.dropped = true
		return
	}
	p.dram = append(p.dram, words...)
}

// scope is an open zone.
type scope struct {
	id       uint32
	marked   bool
	dispatch bool
}

// Open opens a zone. It is written only while room remains for the ends of
// all open zones; a zone without room vanishes as a whole. On a dispatch core
// room for a quick push is kept as well.
func (p *processor) Open(id uint16, time uint64, dispatch bool) scope {
	s := scope{id: uint32(id), dispatch: dispatch}
	kept := p.open
	if dispatch {
		kept += quickPushWords
	}
	if p.w >= profilelog.L1Words-kept {
		p.lostScopes++
		return s
	}
	s.marked = true
	p.open += profilelog.MarkerWords
	p.mark(s.id, time)
	return s
}

// Close closes a zone. A dispatch core pushes when the buffer nears its end.
func (p *processor) Close(s scope, time uint64) {
	if s.marked {
		p.mark(endID(s.id), time)
		p.open -= profilelog.MarkerWords
	}
	if s.dispatch && p.w >= profilelog.L1Words-quickPushWords {
		p.quickPush(time)
	}
}

// quickPush pushes the buffer in the middle of a launch and starts it anew,
// with a zone around the push.
func (p *processor) quickPush(time uint64) {
	id := uint32(zonelog.ZoneHash16(quickPushText))
	p.mark(id, time)
	p.mark(endID(id), time)
	p.push()
	p.w = profilelog.CustomWord
}

// quickPushText is the text whose hash identifies the push zone.
const quickPushText = "PROFILER-NOC-QUICK-SEND,./kernel_profiler.hpp,1,KERNEL_PROFILER"
