// Package nocload lays the transfers of a NoC trace over the links of the two
// networks of a chip and adds up what every link carries.
//
// Both networks are tori. Network 0 goes right until the column is that of the
// destination and then down, network 1 up and then left. A write to a rectangle
// takes every link of the ways to its places once.
package nocload

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"perfsim/io/tenstorrent/noctrace"
)

// chip is a grid of network nodes.
type chip struct {
	name          string
	width, height int
	// linkRate is the capacity of a link in tt-npe's model, in bytes a cycle; 0
	// where no figure is published.
	linkRate float64
}

var chips = []chip{{"wormhole", 10, 12, 30}, {"grayskull", 13, 12, 0}, {"blackhole", 17, 12, 0}}

// Kind sums the transfers of a kind.
type Kind struct {
	Kind      string `json:"kind"`   // kind of event of the trace
	Events    int    `json:"events"` // events of this kind
	Transfers int    `json:"transfers"`
	Bytes     uint64 `json:"bytes"` // bytes of its transfers
}

// Op sums the transfers of a launch.
type Op struct {
	Op        string `json:"op"`          // operator of the trace
	Run       int64  `json:"run_host_id"` // run host id of the operator
	Device    int32  `json:"device"`
	Transfers int    `json:"transfers"`
	Bytes     uint64 `json:"bytes"` // bytes that it transfers
}

// Wait is the time that processors wait in barriers.
type Wait struct {
	Barrier string  `json:"barrier"` // kind of barrier
	Count   int     `json:"count"`   // number of waits
	Cycles  uint64  `json:"cycles"`  // of all processors together
	Mean    float64 `json:"mean_cycles"`
}

// Network sums the links of one network of a device.
type Network struct {
	Device    int32  `json:"device"`
	NoC       int    `json:"noc"`         // network 0 or 1
	Span      uint64 `json:"span_cycles"` // from the first to the last event of the device
	Transfers int    `json:"transfers"`
	Bytes     uint64 `json:"bytes"`        // that enter the network
	LinkBytes uint64 `json:"link_bytes"`   // over all links
	Links     int    `json:"links_in_use"` // links that carry a transfer
	// Mean and Most are bytes over the span and what a link can carry: of all
	// links of the network, and of the busiest; absent where that is not known.
	Mean *float64 `json:"mean_utilization"`
	Most *float64 `json:"busiest_utilization"`
}

// Link is one link between neighbours.
type Link struct {
	Device      int32    `json:"device"`
	NoC         int      `json:"noc"`
	X           int      `json:"x"` // where it begins
	Y           int      `json:"y"`
	To          string   `json:"to"` // right, down, up or left
	Transfers   int      `json:"transfers"`
	Bytes       uint64   `json:"bytes"` // bytes that it carries
	Utilization *float64 `json:"utilization"`
}

// Report is the report of a trace.
type Report struct {
	File      string    `json:"file"`
	Chip      string    `json:"chip"`         // chip whose grid and link rate were used
	Guessed   bool      `json:"chip_guessed"` // by the coordinates
	Events    int       `json:"events"`
	Transfers int       `json:"transfers"`
	Bytes     uint64    `json:"bytes"`                    // bytes of all transfers
	Fabric    int       `json:"fabric_transfers"`         // transfers to another chip
	Unrouted  int       `json:"transfers_without_way"`    // the trace does not tell it
	Open      int       `json:"barriers_without_partner"` // barriers without a start or an end
	Kinds     []Kind    `json:"kinds"`
	Ops       []Op      `json:"ops"`
	Waits     []Wait    `json:"waits"`
	Networks  []Network `json:"networks"` // figures by network
	Links     []Link    `json:"links"`    // the busiest first
}

// chipNames lists the chips whose grids are known.
func chipNames() []string {
	var out []string
	for _, c := range chips {
		out = append(out, c.name)
	}
	return out
}

// Load makes the report of a trace. name is the chip, "" for the smallest grid
// that holds the trace's places.
func Load(file string, t *noctrace.Trace, name string) (*Report, error) {
	at := slices.IndexFunc(chips, func(c chip) bool {
		return (name == "" || c.name == name) && int(t.Max.X) < c.width && int(t.Max.Y) < c.height
	})
	if at < 0 {
		if name != "" && !slices.Contains(chipNames(), name) {
			return nil, fmt.Errorf("the grid of a %s is not known; there are %s", name, strings.Join(chipNames(), ", "))
		}
		if name != "" {
			return nil, fmt.Errorf("the trace has a place %d, %d, which a %s has not", t.Max.X, t.Max.Y, name)
		}
		return nil, fmt.Errorf("the trace has a place %d, %d; the chips known are smaller (%s)", t.Max.X, t.Max.Y, strings.Join(chipNames(), ", "))
	}
	c := &chips[at]
	r := &Report{File: file, Chip: c.name, Guessed: name == "", Events: t.Events, Transfers: len(t.Transfers), Open: t.Open,
		Ops: []Op{}, Waits: []Wait{}, Networks: []Network{}, Links: []Link{}}
	for k, n := range t.Counts {
		r.Kinds = append(r.Kinds, Kind{Kind: t.Kinds[k], Events: n})
	}
	type opKey struct {
		op     uint32
		device int32
	}
	ops := map[opKey]int{}
	g := grids{chip: c, nets: map[netKey]*net{}}
	for i := range t.Transfers {
		x := &t.Transfers[i]
		r.Bytes += x.Bytes
		k := &r.Kinds[x.Kind]
		k.Transfers++
		k.Bytes += x.Bytes
		if x.Fabric {
			r.Fabric++
		}
		if x.Segments == 0 {
			r.Unrouted++
		}
		key := opKey{x.Op, x.Device}
		n, ok := ops[key]
		if !ok {
			n = len(r.Ops)
			ops[key] = n
			r.Ops = append(r.Ops, Op{Op: t.Ops[x.Op].Name, Run: t.Ops[x.Op].Run, Device: x.Device})
		}
		r.Ops[n].Transfers++
		r.Ops[n].Bytes += x.Bytes
		for _, s := range t.Segments[x.First : x.First+uint32(x.Segments)] {
			if err := g.lay(&s, x.Bytes); err != nil {
				return nil, err
			}
		}
	}
	for _, w := range t.Waits {
		r.Waits = append(r.Waits, Wait{w.Kind, w.Count, w.Cycles, float64(w.Cycles) / float64(max(w.Count, 1))})
	}
	g.sum(r, t)
	return r, nil
}

type netKey struct {
	device int32
	noc    uint8
}

// net is the traffic of the links of one network: two links begin at a node,
// along the row and along the column.
type net struct {
	bytes     []uint64
	transfers []int
	stamp     []int // the last way that took the link
	entered   uint64
	count     int
}

type grids struct {
	chip *chip
	nets map[netKey]*net
	ways int
}

// lay adds a way of n bytes.
func (g *grids) lay(s *noctrace.Segment, n uint64) error {
	w, h := g.chip.width, g.chip.height
	k := netKey{s.Device, s.NoC}
	x := g.nets[k]
	if x == nil {
		if len(g.nets) >= 1<<13 {
			return errors.New("more than 4,096 devices")
		}
		links := 2 * w * h
		x = &net{bytes: make([]uint64, links), transfers: make([]int, links), stamp: make([]int, links)}
		g.nets[k] = x
	}
	x.entered += n
	x.count++
	g.ways++
	take := func(col, row, along int) {
		l := 2*(row*w+col) + along
		if x.stamp[l] == g.ways {
			return
		}
		x.stamp[l] = g.ways
		x.bytes[l] += n
		x.transfers[l]++
	}
	for ty := min(s.To.Y, s.End.Y); ty <= max(s.To.Y, s.End.Y); ty++ {
		for tx := min(s.To.X, s.End.X); tx <= max(s.To.X, s.End.X); tx++ {
			col, row := int(s.From.X), int(s.From.Y)
			if s.NoC == 0 {
				for ; col != int(tx); col = (col + 1) % w {
					take(col, row, 0)
				}
				for ; row != int(ty); row = (row + 1) % h {
					take(col, row, 1)
				}
				continue
			}
			for ; row != int(ty); row = (row + h - 1) % h {
				take(col, row, 1)
			}
			for ; col != int(tx); col = (col + w - 1) % w {
				take(col, row, 0)
			}
		}
	}
	return nil
}

// sum lists networks and links.
func (g *grids) sum(r *Report, t *noctrace.Trace) {
	spans := map[int32]uint64{}
	for _, d := range t.Devices {
		spans[d.ID] = d.End - d.First
	}
	share := func(bytes uint64, links int, device int32) *float64 {
		if g.chip.linkRate == 0 || spans[device] == 0 {
			return nil
		}
		v := float64(bytes) / float64(links) / float64(spans[device]) / g.chip.linkRate
		return &v
	}
	directions := [2][2]string{{"right", "down"}, {"left", "up"}}
	for k, x := range g.nets {
		n := Network{Device: k.device, NoC: int(k.noc), Span: spans[k.device], Transfers: x.count, Bytes: x.entered}
		most := uint64(0)
		for l, b := range x.bytes {
			if x.transfers[l] == 0 {
				continue
			}
			n.Links++
			n.LinkBytes += b
			most = max(most, b)
			r.Links = append(r.Links, Link{Device: k.device, NoC: int(k.noc), X: l / 2 % g.chip.width, Y: l / 2 / g.chip.width, To: directions[k.noc][l%2],
				Transfers: x.transfers[l], Bytes: b, Utilization: share(b, 1, k.device)})
		}
		n.Mean, n.Most = share(n.LinkBytes, len(x.bytes), k.device), share(most, 1, k.device)
		r.Networks = append(r.Networks, n)
	}
	slices.SortFunc(r.Networks, func(a, b Network) int {
		return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.NoC, b.NoC))
	})
	slices.SortFunc(r.Links, func(a, b Link) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(b.Transfers, a.Transfers), cmp.Compare(a.Device, b.Device), cmp.Compare(a.NoC, b.NoC),
			cmp.Compare(a.Y, b.Y), cmp.Compare(a.X, b.X), cmp.Compare(a.To, b.To))
	})
}
