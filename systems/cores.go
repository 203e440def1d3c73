package systems

import (
	"context"
	"errors"
	"fmt"

	"perfsim/components"
	"perfsim/systems/spmd"
	"perfsim/systems/whatif"
)

// CoresPoint is a graph on a number of cores, against the same on one.
type CoresPoint struct {
	Cores int64  `json:"cores"`      // cores that share the work
	NS    uint64 `json:"latency_ns"` // of one core's program, collectives included
	// OneNS is the latency of all the work on one core. Where the module is one
	// device's program it cannot be predicted: Derived is then set, and it is the
	// latency without collectives times the cores.
	OneNS      uint64  `json:"one_core_ns"`
	Derived    bool    `json:"one_core_derived"`
	Speedup    float64 `json:"speedup"`    // OneNS / NS
	Efficiency float64 `json:"efficiency"` // Speedup / Cores
	// CollectivesNS is by how much the latency falls where collectives take no
	// time, WorkNS how far it is then above OneNS / Cores: work that several cores
	// do, and parts too small to fill the engines; negative where a part is faster
	// than its share of the whole.
	CollectivesNS uint64 `json:"collectives_ns"`
	WorkNS        int64  `json:"work_ns"`
	How           string `json:"how,omitempty"` // how the work is shared
}

// freeCollectives is the setting under which collectives take no time.
const freeCollectives = "latency.CollectiveCompute=0.000000001x"

// ScaleCores predicts the graph at r.Path on every number of cores.
func ScaleCores(ctx context.Context, r Request, cores []int64) ([]CoresPoint, error) {
	if r.Path == "-" || r.Path == "" {
		return nil, RequestError{errors.New("a module is read once for every number of cores: give a file")}
	}
	free, err := whatif.Parse(freeCollectives)
	if err != nil {
		return nil, err
	}
	predict := func(n int64, cuts []string) (ns, without uint64, how string, err error) {
		one := r
		one.Settings.Graph.Cores, one.Settings.Graph.Cuts = n, cuts
		res, err := Simulate(ctx, one)
		if err != nil {
			return 0, 0, "", err
		}
		if res.Lowering == nil {
			return 0, 0, "", RequestError{fmt.Errorf("%s is no operator graph: its cores are part of it", r.Path)}
		}
		for _, note := range res.World.Module.Notes {
			if note.Code == components.NotePartitioned || note.Code == components.NoteAllDevices {
				how = note.Text
			}
		}
		ns = res.World.Latency(components.RunA)
		if !hasCollectives(res.World.Module) {
			return ns, ns, how, nil
		}
		s, err := res.Sweep(ctx, [][]whatif.Setting{free.Values}, nil)
		if err != nil {
			return 0, 0, "", err
		}
		return ns, s.Points[0].NS, how, nil
	}
	var oneNS uint64
	one, _, _, err := predict(1, nil)
	derived := errors.As(err, new(*spmd.CoresError))
	if err != nil && !derived {
		return nil, err
	}
	oneNS = one
	var out []CoresPoint
	for _, n := range cores {
		p := CoresPoint{Cores: n, NS: one, OneNS: oneNS, Derived: derived}
		if n > 1 || derived {
			ns, without, how, err := predict(n, r.Settings.Graph.Cuts)
			if err != nil {
				return nil, err
			}
			if derived {
				p.OneNS = without * uint64(n)
			}
			p.NS, p.How = ns, how
			p.CollectivesNS = ns - min(ns, without)
			p.WorkNS = int64(without) - int64(p.OneNS/uint64(n))
		}
		p.Speedup = float64(p.OneNS) / float64(max(p.NS, 1))
		p.Efficiency = p.Speedup / float64(n)
		out = append(out, p)
	}
	return out, nil
}

func hasCollectives(m *components.Module) bool {
	for _, f := range m.Instr.Flags.Slice() {
		if f&components.FlagCollective != 0 {
			return true
		}
	}
	return false
}
