package profilelog

import (
	"encoding/binary"
	"fmt"

	"perfsim/components/zonelog"
)

// Sizes of the profiler buffer of one processor in L1, in markers and in
// 32-bit words.
const (
	MarkerWords       = 2   // id and high time bits, low time bits
	ProgramIDMarkers  = 2   // identity words ID_HH, ID_HL, ID_LH, ID_LL
	GuaranteedMarkers = 4   // firmware start, firmware end, kernel start, kernel end
	OptionalMarkers   = 250 // 125 scopes
	CustomWord        = (ProgramIDMarkers + GuaranteedMarkers) * MarkerWords
	L1Words           = (ProgramIDMarkers + GuaranteedMarkers + OptionalMarkers) * MarkerWords

	// oldMarkers is the capacity of the recorder of V0..V3: it wrote into
	// the 204-byte print buffer, two words of header and three a marker.
	oldMarkers = 16
)

// Words of the identity at the head of each launch.
const (
	WordIDHH = 0
	WordIDHL = 1
	WordIDLH = 2 // risc 3 bits, core flat id 8 bits << 3, trace count 16 bits << 11
	WordIDLL = 3 // run host id; before 2024-08 the host counter << 16 | run counter
	// First words of the guaranteed markers.
	WordFWStart     = 4
	WordFWEnd       = 6
	WordKernelStart = 8
	WordKernelEnd   = 10
)

// Layout is the bit layout of a marker. The zero value is not usable; the
// layouts below are.
type Layout struct {
	IDBits   uint // timer id, packet type included
	TimeHigh uint // high bits of the time in the first word
	// HostCounter says that the last identity word is host counter << 16 |
	// run counter (logs up to V5), else it is the run host id.
	HostCounter bool
}

// LayoutSeed is the layout of 2024-03 (V5), LayoutClassic that of V6 to V11,
// LayoutWideID a proposed one in which the host hands out 18-bit ids and the
// time has 42 bits.
var (
	LayoutSeed    = Layout{IDBits: 19, TimeHigh: 12, HostCounter: true}
	LayoutClassic = Layout{IDBits: 19, TimeHigh: 12}
	LayoutWideID  = Layout{IDBits: 21, TimeHigh: 10}
)

// ValidBit marks a written marker.
const ValidBit = 1 << 31

// Encode gives the two words of a marker: valid bit, timer id, high time
// bits; low time word. Bits that do not fit are cut, as the device does.
func (y Layout) Encode(timer uint32, time uint64) (hi, lo uint32) {
	return ValidBit | (timer&(1<<y.IDBits-1))<<y.TimeHigh | uint32(time>>32)&(1<<y.TimeHigh-1), uint32(time)
}

// Decode takes the words apart. ok is false without the valid bit.
func (y Layout) Decode(hi, lo uint32) (timer uint32, time uint64, ok bool) {
	return hi >> y.TimeHigh & (1<<y.IDBits - 1), uint64(hi&(1<<y.TimeHigh-1))<<32 | uint64(lo), hi&ValidBit != 0
}

// PacketShift is where the packet type starts in a timer id.
func (y Layout) PacketShift() uint { return y.IDBits - 3 }

// Packet splits a timer id into packet type and zone id.
func (y Layout) Packet(timer uint32) (zonelog.MarkerType, uint32) {
	s := y.PacketShift()
	return zonelog.MarkerType(timer >> s), timer & (1<<s - 1)
}

// RawMarker is one marker of a raw buffer.
type RawMarker struct {
	Word  int // offset in words where it lies
	Timer uint32
	Type  zonelog.MarkerType
	ID    uint32 // zone id, without packet type
	Time  uint64
	Sum   uint32    // of a ZONE_TOTAL
	Data  [2]uint64 // of TS_DATA, TS_DATA_16B
	Slot  Slot
}

// Slot says in which slot a marker lies.
type Slot uint8

// Slots of a launch: the four guaranteed ones and the optional rest.
const (
	SlotFWStart Slot = iota
	SlotFWEnd
	SlotKernelStart
	SlotKernelEnd
	SlotCustom
)

var slotWords = [4]int{WordFWStart, WordFWEnd, WordKernelStart, WordKernelEnd}

// RawRun is one launch in a raw buffer.
type RawRun struct {
	Word    int // offset of the identity
	Risc    int
	Flat    int // flat core id
	Trace   uint32
	RunID   int64 // run counter, -1 in layouts without one
	HostID  int64
	Markers []RawMarker
}

// RawProblem is a place of a raw buffer that does not decode.
type RawProblem struct {
	Word   int
	Reason string
}

// DecodeRaw decodes the words that one processor has sent to its DRAM buffer
// (or one L1 buffer): launches one after the other, each announced by two
// zero words. What does not decode is reported and skipped up to the next
// announcement, so that a damaged launch does not take the others along.
func DecodeRaw(words []uint32, y Layout) ([]RawRun, []RawProblem) {
	var runs []RawRun
	var bad []RawProblem
	fail := func(at int, format string, args ...any) {
		bad = append(bad, RawProblem{at, fmt.Sprintf(format, args...)})
	}
	i := 0
	for i+1 < len(words) {
		if words[i] != 0 || words[i+1] != 0 {
			fail(i, "no launch starts here: words 0x%08x 0x%08x", words[i], words[i+1])
			for i += 2; i+1 < len(words) && (words[i] != 0 || words[i+1] != 0); i += 2 {
			}
			continue
		}
		if len(words)-i < CustomWord {
			if !allZero(words[i:]) {
				fail(i, "the launch has %d of the %d words that every launch has", len(words)-i, CustomWord)
			}
			return runs, bad
		}
		head := words[i : i+CustomWord]
		if allZero(head) {
			i += 2 // unused memory
			continue
		}
		id := head[WordIDLH]
		r := RawRun{Word: i, Risc: int(id & 7), Flat: int(id >> 3 & 0xFF), Trace: id >> 11 & 0xFFFF, RunID: -1}
		if id>>27 != 0 {
			fail(i+WordIDLH, "identity 0x%08x has bits above the trace count", id)
		}
		if y.HostCounter {
			r.RunID, r.HostID = int64(head[WordIDLL]&0xFFFF), int64(head[WordIDLL]>>16)
		} else {
			r.HostID = int64(head[WordIDLL])
		}
		for s, w := range slotWords {
			hi, lo := head[w], head[w+1]
			timer, t, ok := y.Decode(hi, lo)
			if hi == ValidBit && (lo == ValidBit || lo == 0) {
				continue // never written in this launch
			}
			typ, zid := y.Packet(timer)
			want := zonelog.MarkerType(s & 1)
			if !ok || typ != want {
				fail(i+w, "guaranteed slot %d holds 0x%08x 0x%08x", s, hi, lo)
				continue
			}
			r.Markers = append(r.Markers, RawMarker{Word: i + w, Timer: timer, Type: typ, ID: zid, Time: t, Slot: Slot(s)})
		}
		i += CustomWord
		for i+1 < len(words) {
			hi, lo := words[i], words[i+1]
			if hi == 0 && lo == 0 {
				break // the next launch
			}
			timer, t, ok := y.Decode(hi, lo)
			if !ok {
				fail(i, "word 0x%08x has no valid bit", hi)
				i += 2
				continue
			}
			if hi == ValidBit && lo == 0 {
				i += 2 // padding
				continue
			}
			m := RawMarker{Word: i, Timer: timer, Time: t, Slot: SlotCustom}
			m.Type, m.ID = y.Packet(timer)
			payload := 0
			switch m.Type {
			case zonelog.MarkerTotal:
				// The low word is the sum; the time is that of the launch.
				m.Sum, m.Time = lo, 0
				if len(r.Markers) > 0 {
					m.Time = r.Markers[0].Time
				}
			case zonelog.MarkerData:
				payload = 1
			case zonelog.MarkerData16:
				payload = 2
			case zonelog.MarkerStart, zonelog.MarkerEnd, zonelog.MarkerEvent:
			default:
				fail(i, "packet type %d is unknown", m.Type)
				i += 2
				continue
			}
			i += MarkerWords
			if len(words)-i < payload*MarkerWords {
				fail(m.Word, "%s ends behind the buffer", m.Type)
				i = len(words)
				break
			}
			for k := range payload {
				m.Data[k] = uint64(words[i])<<32 | uint64(words[i+1])
				i += MarkerWords
			}
			r.Markers = append(r.Markers, m)
		}
		runs = append(runs, r)
	}
	if i < len(words) && words[i] != 0 {
		fail(i, "one word is left over")
	}
	return runs, bad
}

func allZero(w []uint32) bool {
	for _, v := range w {
		if v != 0 {
			return false
		}
	}
	return true
}

// Words reads a binary dump of little-endian words, the order of the device.
func Words(dump []byte) ([]uint32, error) {
	if len(dump)%4 != 0 {
		return nil, fmt.Errorf("raw buffer: %d bytes are not whole 32-bit words", len(dump))
	}
	w := make([]uint32, len(dump)/4)
	for i := range w {
		w[i] = binary.LittleEndian.Uint32(dump[4*i:])
	}
	return w, nil
}

// PerfCounter is the payload of a performance counter (id 9090).
type PerfCounter struct {
	Value uint32
	Ref   uint32 // 24 bits
	Type  uint8
}

// DecodePerfCounter takes the 64-bit payload apart: value 32 bits, reference
// count 24 bits, type 8 bits, from the low end.
func DecodePerfCounter(v uint64) PerfCounter {
	return PerfCounter{Value: uint32(v), Ref: uint32(v>>32) & 0xFFFFFF, Type: uint8(v >> 56)}
}

// Ids that the vendor's tools use for their own markers.
const (
	IDNoCTrace    = 12345
	IDNoCDebug    = 23456
	IDPerfCounter = 9090
	IDSumBase     = 3000 // GLOBAL_SUM_MARKER, 2024-03 only
)
