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

// GenTotal is what a generated log holds of one zone, counted while writing
// and without the reader, so that tests can compare.
type GenTotal struct {
	Count, Cycles, Lost uint64
}

var genRiscs = []string{"BRISC", "NCRISC", "TRISC_0", "TRISC_1", "TRISC_2"}

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
	totals = map[string]GenTotal{}
	add := func(name string, d uint64, lost bool) {
		t := totals[name]
		if lost {
			t.Lost++
		} else {
			t.Count++
			t.Cycles += d
		}
		totals[name] = t
	}
	typed := out.version >= 7
	const dir = "/opt/tt-metal/tt_metal/hw/firmware/src/tt-1xx/"
	const kdir = "./tt_metal/programming_examples/profiler/kernels/"
	type def struct {
		name, file string
		line       uint32
		id         uint32
	}
	mk := func(name, file string, line uint32) def {
		h := zonelog.ZoneHash16(fmt.Sprintf("%s,%s,%d,KERNEL_PROFILER", name, file, line))
		return def{name, file, line, uint32(h)}
	}
	fw, kn := map[string]def{}, map[string]def{}
	for i, r := range genRiscs {
		n := r
		if i >= 2 {
			n = "TRISC"
		}
		fw[r] = mk(n+"-FW", dir+"firmware.cc", uint32(300+10*i))
		kn[r] = mk(n+"-KERNEL", dir+"kernel.cc", uint32(40+10*i))
	}
	user := make([]def, o.Zones)
	names := []string{"read_tile", "wait_front", "matmul_block", "pack_tile", "reserve_back", "write_tile", "semaphore_wait", "mcast_send"}
	for i := range user {
		user[i] = mk(fmt.Sprintf("%s_%d", names[i%len(names)], i/len(names)), kdir+"compute/bmm_large_block_zm.cpp", uint32(100+i))
	}
	rng := rand.New(rand.NewPCG(o.Seed, 0x7470726f66))
	clock := make([]uint64, o.Devices)
	for d := range clock {
		clock[d] = 1_000_000_000 + uint64(rng.IntN(1<<30))
	}
	// One core at a time: BRISC ends its firmware zone when the others have,
	// and its rows come first.
	var lanes [5][]Row
	var row Row
	emit := func(lane int, d def, typ zonelog.MarkerType, t uint64) {
		row.Name, row.File, row.Line, row.Type, row.Time = d.name, d.file, d.line, typ, t
		row.Timer = d.id
		if typ == zonelog.MarkerEnd && !typed {
			row.Timer |= zonelog.ZoneEndBit
		}
		lanes[lane] = append(lanes[lane], row)
	}
	n := 0
	starts := make([]uint64, o.Nest)
	for launch := int64(1); rows < o.Rows || rows == 0; launch++ {
		for d := range o.Devices {
			start := clock[d]
			last := start
			for y := 1; y <= o.Height; y++ {
				for x := 1; x <= o.Width; x++ {
					core := start + uint64(rng.IntN(700))
					ended := core
					for k := range genRiscs {
						lane := (k + 1) % len(genRiscs) // BRISC last
						risc := genRiscs[lane]
						row.Lane = zonelog.ZoneLane{Device: int32(d), X: int32(x), Y: int32(y), Risc: risc}
						row.Run = zonelog.LogRun{RunID: launch, HostID: launch<<10 | int64(d), TraceID: -1, TraceCounter: -1}
						lanes[lane] = lanes[lane][:0]
						t := core + uint64(rng.IntN(60))
						fw0 := t
						t += 300 + uint64(rng.IntN(300))
						k0 := t
						emit(lane, fw[risc], zonelog.MarkerStart, fw0)
						emit(lane, kn[risc], zonelog.MarkerStart, k0)
						// User zones, nested in groups.
						for z := 0; z < o.Zones; z += o.Nest {
							g := min(o.Nest, o.Zones-z)
							for i := range g {
								t += 10 + uint64(rng.IntN(90))
								starts[i] = t
								emit(lane, user[z+i], zonelog.MarkerStart, t)
							}
							for i := g - 1; i >= 0; i-- {
								t += 20 + uint64(rng.IntN(900))
								n++
								if o.LoseEnds > 0 && n%o.LoseEnds == 0 {
									add(user[z+i].name, 0, true)
									continue
								}
								add(user[z+i].name, t-starts[i], false)
								emit(lane, user[z+i], zonelog.MarkerEnd, t)
							}
						}
						t += 15 + uint64(rng.IntN(50))
						add(kn[risc].name, t-k0, false)
						emit(lane, kn[risc], zonelog.MarkerEnd, t)
						t += 80 + uint64(rng.IntN(60))
						if lane == 0 {
							t = max(t, ended+20+uint64(rng.IntN(60)))
						}
						add(fw[risc].name, t-fw0, false)
						emit(lane, fw[risc], zonelog.MarkerEnd, t)
						ended = max(ended, t)
					}
					last = max(last, ended)
					for _, lane := range lanes {
						for i := range lane {
							if err := out.Write(&lane[i]); err != nil {
								return rows, nil, err
							}
						}
						rows += int64(len(lane))
					}
				}
			}
			clock[d] = last + 500 + uint64(rng.IntN(20000))
		}
	}
	return rows, totals, out.Flush()
}

func cmpOr(v, def int) int {
	if v <= 0 {
		return def
	}
	return v
}
