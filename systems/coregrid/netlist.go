package coregrid

import (
	"perfsim/io/tenstorrent/netlist"
	"perfsim/systems/floorplan"
)

// Netlist returns the plan as a netlist of the vendor's form: a graph an
// epoch, with the grid place and size of every operator.
func (p *Plan) Netlist(name, fidelity string) *netlist.Netlist {
	n := &netlist.Netlist{Name: name, Arch: []string{p.Model.Mach.Name}}
	for i, e := range p.Epochs {
		g := netlist.Graph{Name: epochName(i), InputCount: p.Inputs}
		for _, x := range e.Ops {
			o := &p.Ops[x.Op]
			op := netlist.Op{Name: o.Name, Type: o.Kind, Loc: netlist.Size{R: x.Row, C: x.Col}, Grid: netlist.Size{R: x.R, C: x.C}, OutFormat: p.Model.Format, Transpose: x.Transposed, Fidelity: fidelity}
			for _, in := range o.Inputs {
				op.Inputs = append(op.Inputs, p.Ops[in.From].Name)
			}
			g.Ops = append(g.Ops, op)
		}
		n.Graphs = append(n.Graphs, g)
	}
	return n
}

// Grid returns the machine's grid as the epoch analysis takes it.
func (p *Plan) Grid() floorplan.Grid {
	m := p.Model.Mach
	return floorplan.Grid{Arch: m.Name, Rows: m.Rows, Cols: m.Cols, Source: m.Name}
}
