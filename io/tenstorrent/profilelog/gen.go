package profilelog

import (
	"fmt"
	"io"
	"math/rand/v2"

	"perfsim/components/zonelog"
)

// GenOptions says how large a synthetic log is.
type GenOptions struct {
	Rows    int64  // least number of rows; whole launches are written
	Version string // V5 to V11; empty means V11
	Devices int    // 0 means 1
	Width   int    // cores of a device: Width x Height; 0 means 8 x 8
	Height  int
	Zones   int    // user zones a processor records in a launch; 0 means 6
	Nest    int    // depth of their nesting; 0 means 2
	Seed    uint64 // same seed, same bytes
	// LoseEnds drops the end of one user zone in so many (0 for none), as a
	// damaged buffer does.
	LoseEnds int
}

// GenTotal is the sum of one zone in a generated log, counted while writing and
// without the reader, so that tests can compare.
type GenTotal struct {
	Count, Cycles, Lost uint64
}

var genRiscs = []string{"BRISC", "NCRISC", "TRISC_0", "TRISC_1", "TRISC_2"}

// generator writes one log.
type generator struct {
	o      GenOptions
	out    *Writer
	rng    *rand.Rand
	fw, kn map[string]madeZone // by processor
	user   []madeZone
	totals map[string]GenTotal
	ends   int // ends of user zones so far

	row    Row
	lanes  [5][]Row // of the core being written
	starts []uint64 // of the user zones that are open
}

type madeZone struct {
	name, file string
	line, id   uint32
}

func newMadeZone(name, file string, line int) madeZone {
	h := zonelog.ZoneHash16(fmt.Sprintf("%s,%s,%d,KERNEL_PROFILER", name, file, line))
	return madeZone{name, file, uint32(line), uint32(h)}
}

// Generate writes a synthetic device log of realistic shape: every core of
// every device takes part in every launch, each processor records a firmware
// zone, a kernel zone and user zones in it, rows go core by core as the
// vendor's host writes them. It streams: memory does not grow with the log.
func Generate(w io.Writer, o GenOptions) (rows int64, totals map[string]GenTotal, err error) {
	if o.Version == "" {
		o.Version = "V11"
	}
	o.Devices, o.Zones, o.Nest = max(o.Devices, 1), cmpOr(o.Zones, 6), cmpOr(o.Nest, 2)
	o.Width, o.Height = cmpOr(o.Width, 8), cmpOr(o.Height, 8)
	out, err := NewWriter(w, o.Version, "blackhole", 1350, o.Width*o.Height)
	if err != nil {
		return 0, nil, err
	}
	g := &generator{o: o, out: out, rng: rand.New(rand.NewPCG(o.Seed, 0x7470726f66)), totals: map[string]GenTotal{}, starts: make([]uint64, o.Nest)}
	g.zones()
	clock := make([]uint64, o.Devices)
	for d := range clock {
		clock[d] = 1_000_000_000 + uint64(g.rng.IntN(1<<30))
	}
	for launch := int64(1); rows < o.Rows || rows == 0; launch++ {
		for d := range o.Devices {
			start := clock[d]
			last := start
			g.row.Run = zonelog.LogRun{RunID: launch, HostID: launch<<10 | int64(d), TraceID: -1, TraceCounter: -1}
			for y := 1; y <= o.Height; y++ {
				for x := 1; x <= o.Width; x++ {
					g.row.Lane = zonelog.ZoneLane{Device: int32(d), X: int32(x), Y: int32(y)}
					last = max(last, g.core(start))
					n, err := g.write()
					if err != nil {
						return rows, nil, err
					}
					rows += n
				}
			}
			clock[d] = last + 500 + uint64(g.rng.IntN(20000))
		}
	}
	return rows, g.totals, out.Flush()
}

// zones names the zones of all processors.
func (g *generator) zones() {
	const dir = "/opt/tt-metal/tt_metal/hw/firmware/src/tt-1xx/"
	const kdir = "./tt_metal/programming_examples/profiler/kernels/"
	g.fw, g.kn = map[string]madeZone{}, map[string]madeZone{}
	for i, r := range genRiscs {
		n := r
		if i >= 2 {
			n = "TRISC"
		}
		g.fw[r] = newMadeZone(n+"-FW", dir+"firmware.cc", 300+10*i)
		g.kn[r] = newMadeZone(n+"-KERNEL", dir+"kernel.cc", 40+10*i)
	}
	names := []string{"read_tile", "wait_front", "matmul_block", "pack_tile", "reserve_back", "write_tile", "semaphore_wait", "mcast_send"}
	for i := range g.o.Zones {
		g.user = append(g.user, newMadeZone(fmt.Sprintf("%s_%d", names[i%len(names)], i/len(names)), kdir+"compute/bmm_large_block_zm.cpp", 100+i))
	}
}

// between returns a number of cycles from lo on, below lo+n.
func (g *generator) between(lo uint64, n int) uint64 { return lo + uint64(g.rng.IntN(n)) }

// core records a launch on a core and returns when it ends: BRISC ends its
// firmware zone when the others have, and its rows come first.
func (g *generator) core(start uint64) (ended uint64) {
	core := start + g.between(0, 700)
	ended = core
	for k := range genRiscs {
		lane := (k + 1) % len(genRiscs) // BRISC last
		risc := genRiscs[lane]
		g.row.Lane.Risc = risc
		g.lanes[lane] = g.lanes[lane][:0]
		fw := core + g.between(0, 60)
		kernel := fw + g.between(300, 300)
		g.start(lane, g.fw[risc], fw)
		g.start(lane, g.kn[risc], kernel)
		t := g.userZones(lane, kernel)
		t += g.between(15, 50)
		g.end(lane, g.kn[risc], kernel, t)
		t += g.between(80, 60)
		if lane == 0 {
			t = max(t, ended+g.between(20, 60))
		}
		g.end(lane, g.fw[risc], fw, t)
		ended = max(ended, t)
	}
	return ended
}

// userZones records the user zones of a processor, nested in groups, from t on
// and returns when they end.
func (g *generator) userZones(lane int, t uint64) uint64 {
	for z := 0; z < len(g.user); z += g.o.Nest {
		group := g.user[z:min(z+g.o.Nest, len(g.user))]
		for i := range group {
			t += g.between(10, 90)
			g.starts[i] = t
			g.start(lane, group[i], t)
		}
		for i := len(group) - 1; i >= 0; i-- {
			t += g.between(20, 900)
			g.ends++
			if g.o.LoseEnds > 0 && g.ends%g.o.LoseEnds == 0 {
				total := g.totals[group[i].name]
				total.Lost++
				g.totals[group[i].name] = total
				continue
			}
			g.end(lane, group[i], g.starts[i], t)
		}
	}
	return t
}

func (g *generator) start(lane int, z madeZone, t uint64) { g.mark(lane, z, zonelog.MarkerStart, t) }

// end records the end of a zone that began at from and counts it.
func (g *generator) end(lane int, z madeZone, from, t uint64) {
	total := g.totals[z.name]
	total.Count++
	total.Cycles += t - from
	g.totals[z.name] = total
	g.mark(lane, z, zonelog.MarkerEnd, t)
}

func (g *generator) mark(lane int, z madeZone, typ zonelog.MarkerType, t uint64) {
	r := g.row
	r.Name, r.File, r.Line, r.Type, r.Time, r.Timer = z.name, z.file, z.line, typ, t, z.id
	if typed := g.out.version >= 7; typ == zonelog.MarkerEnd && !typed {
		r.Timer |= zonelog.ZoneEndBit
	}
	g.lanes[lane] = append(g.lanes[lane], r)
}

// write writes the rows of a core and returns their number.
func (g *generator) write() (rows int64, err error) {
	for _, lane := range g.lanes {
		for i := range lane {
			if err := g.out.Write(&lane[i]); err != nil {
				return rows, err
			}
		}
		rows += int64(len(lane))
	}
	return rows, nil
}

func cmpOr(v, def int) int {
	if v <= 0 {
		return def
	}
	return v
}
