package whatif

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"perfsim/components"
	"perfsim/components/machine"
	"perfsim/ecs"
	"perfsim/systems/antidep"
	"perfsim/systems/cost"
	"perfsim/systems/index"
	"perfsim/systems/place"
	"perfsim/systems/scenario"
)

// plan is a copy of a world while settings are applied to it: the machine is
// changed first, then costs are filled, then what scales costs, then edges.
type plan struct {
	base  *components.World
	w     *components.World
	scale []scaling
	edges []func(context.Context, *plan) error
	rules []func(*place.Rules)
	runB  bool // anti-dependencies are left out altogether
	notes []string
	// Of buffers=N: how to choose what fits, nil for all copies whether they
	// fit or not; what the memories have to hold; whether that is too much.
	fit     func() (map[antidep.Buffer]int, error)
	needs   []antidep.Need
	tooMuch bool
}

// scaling multiplies the costs of some instructions.
type scaling struct {
	engine        components.Engine
	byEngine      bool
	lanes         []bool // of these lanes alone, nil for none
	opcode        components.Opcode
	issue, result float64
}

// Parameter describes a parameter for people.
type Parameter struct {
	Name string `json:"name"` // name of the parameter in a setting
	Doc  string `json:"doc"`
}

// Parameters lists what can be assigned, patterns included.
func Parameters() []Parameter {
	return []Parameter{
		{"clock", "the clocks of all engines; descriptor generation (reference.dma.dge_clock) and transfers keep theirs"},
		{"pe.clock, act.clock, dve.clock, pool.clock, sp.clock", "one engine's clock, in steps of 10 MHz: 1.2x, 1.4GHz; it drives the instructions of the engine and, in the reference model, every opcode whose cost names it (clock: dve of Memset, on any engine); sp.clock drives what has no engine clock of its own"},
		{"dma.engines", "number of DMA engines over which a transfer is spread"},
		{"dma.rate", "bytes per ns of one DMA engine"},
		{"queue.depth, queue.depth.NAME", "entries of every DMA ring, or of one queue or queue class (reference model)"},
		{"latency.ENGINE, latency.LANE, latency.OPCODE", "how long instructions take, issue interval and result"},
		{"issue.ENGINE, issue.LANE, issue.OPCODE", "how long instructions keep their engine"},
		{"cores", "N cores share a graph: by the module's own shardings and replica groups, along the dimensions of --cut, or along its batch; asked for alone"},
		{"buffers", "N copies of every buffer that anti-dependencies protect"},
		{"drop", "leave dependencies out: anti, output, ordered, anti+output, anti:buffer=NAME; or a constraint as explain names it"},
		{"rule.banks, rule.couplings, rule.rings", "off: leave a rule of the reference model out"},
		{"NAME of a calibrated constant", "such as dma.row_ns or governor.slow_rate (perfsim machine show lists them)"},
		{"hbm.scale", "factor on the rate of transfers from and to device memory (reference model; reference.hbm_scale)"},
		{"FIELD of the machine description", "such as reference.overlap_compute_ns or memory.hbm_bytes_per_ns"},
	}
}

var clocks = []string{"pe", "act", "dve", "pool", "sp"}

// SettingError is an error of an assignment: of its name, of its value, or
// because the model that is used has no place for it.
type SettingError struct {
	Setting string // NAME=VALUE
	Err     error
	// Names are those that exist, where the setting has an unknown one.
	Names []string
}

func (e *SettingError) Error() string { return e.Setting + ": " + e.Err.Error() }

// Unwrap returns what is wrong with the setting.
func (e *SettingError) Unwrap() error { return e.Err }

// KnownNames returns the names that exist where an unknown one is the error.
func (e *SettingError) KnownNames() []string { return e.Names }

var errUnknown = errors.New("no parameter, calibrated constant or field of the machine description has this name; whatif --list prints the names")

// apply applies one setting.
func (p *plan) apply(s Setting) error {
	err := p.set(s)
	if err == nil {
		return nil
	}
	e := &SettingError{Setting: s.Name + "=" + s.Text, Err: err}
	if errors.Is(err, errUnknown) {
		e.Names = p.names(s.Name)
	}
	return e
}

// names lists what can be assigned in place of an unknown name: what stands
// under the beginning of the name where that exists, else the parameters and
// the beginnings of the calibrated constants and fields. A name with parts of
// its own ends in ".…".
func (p *plan) names(unknown string) []string {
	text, err := yaml.Marshal(p.w.Machine)
	var doc yaml.Node
	if err != nil || yaml.Unmarshal(text, &doc) != nil || len(doc.Content) == 0 {
		return nil // no description to list
	}
	under := func(prefix string) (list []string) {
		for _, name := range slices.Sorted(maps.Keys(p.w.Machine.Calibrated.Constants)) {
			if rest, ok := strings.CutPrefix(name, prefix); ok {
				head, _, more := strings.Cut(rest, ".")
				if more {
					head += ".…"
				}
				list = append(list, prefix+head)
			}
		}
		n := find(doc.Content[0], strings.TrimSuffix(prefix, "."))
		for k := 0; n != nil && n.Kind == yaml.MappingNode && k+1 < len(n.Content); k += 2 {
			name := prefix + n.Content[k].Value
			if n.Content[k+1].Kind != yaml.ScalarNode {
				name += ".…"
			}
			list = append(list, name)
		}
		return slices.Compact(list)
	}
	for at := strings.LastIndex(unknown, "."); at >= 0; at = strings.LastIndex(unknown[:at], ".") {
		if list := under(unknown[:at+1]); len(list) > 0 {
			return list
		}
	}
	var list []string
	for _, x := range Parameters() {
		if !strings.Contains(x.Name, " of ") {
			list = append(list, strings.Split(x.Name, ", ")...)
		}
	}
	return append(list, under("")...)
}

func (p *plan) set(s Setting) error {
	head, rest, _ := strings.Cut(s.Name, ".")
	switch head {
	case "latency", "issue", "buffers", "drop", "rule":
	default:
		if p.w.Config.Model == cost.Replay {
			return errors.New("the replay model takes the durations of the input, which the machine does not change; latency.*, issue.*, buffers and drop do")
		}
	}
	switch {
	case s.Name == "clock":
		for _, e := range clocks {
			if err := p.clock(e, s); err != nil {
				return err
			}
		}
		return nil
	case rest == "clock" && isClock(head):
		return p.clock(head, s)
	case s.Name == "dma.engines":
		return p.dmaEngines(s)
	case s.Name == "dma.rate":
		return p.dmaRate(s)
	case s.Name == "queue.depth" || strings.HasPrefix(s.Name, "queue.depth."):
		return p.queueDepth(strings.TrimPrefix(strings.TrimPrefix(s.Name, "queue.depth"), "."), s)
	case head == "latency" || head == "issue":
		return p.latency(head, rest, s)
	case s.Name == "buffers":
		n, err := whole(s, 1)
		if err != nil {
			return err
		}
		p.edges = append(p.edges, func(ctx context.Context, p *plan) error { return p.buffers(ctx, n) })
		return p.needsEdges(s.Name)
	case s.Name == "drop":
		return p.drop(s)
	case head == "rule":
		return p.rule(rest, s)
	}
	switch s.Name {
	case "hbm.scale":
		s.Name = "reference.hbm_scale"
	case "reference.fixed_cycles":
		if p.w.Machine.Reference.CycleAccurate {
			p.notes = append(p.notes, "reference.fixed_cycles counts with reference.cycle_accurate=false only")
		}
	}
	if c, ok := p.w.Machine.Calibrated.Constants[s.Name]; ok {
		v, err := s.on(c.Value)
		if err != nil {
			return err
		}
		c.Value = v
		p.w.Machine.Calibrated.Constants[s.Name] = c
		if p.w.Config.Model != cost.Calibrated {
			p.notes = append(p.notes, s.Name+" is a constant of the calibrated model; the "+p.w.Config.Model.String()+" model does not use it")
		}
		return nil
	}
	return p.field(s)
}

// on returns the setting's value where v is there now.
func (s Setting) on(v float64) (float64, error) {
	switch {
	case !s.Number:
		return 0, fmt.Errorf("%q is not a number, factor or change", s.Text)
	case s.Factor:
		return v * s.Value, nil
	}
	return s.Value, nil
}

// whole returns the setting's value as a whole number where v is there now.
func whole(s Setting, v int) (int, error) {
	f, err := s.on(float64(v))
	if err != nil {
		return 0, err
	}
	n := math.Round(f)
	if n < 1 || n > 1<<20 {
		return 0, fmt.Errorf("%v is not between 1 and %d", f, 1<<20)
	}
	if !s.Factor && n != f {
		return 0, fmt.Errorf("%v is not a whole number", f)
	}
	return int(n), nil
}

func isClock(name string) bool {
	for _, c := range clocks {
		if c == name {
			return true
		}
	}
	return false
}

// clock sets an engine's clock, which descriptions hold in units of 10 MHz.
func (p *plan) clock(engine string, s Setting) error {
	c := &p.w.Machine.Clock
	one := func(v *int) error {
		f := s.Value
		if !s.Factor {
			if f < 1e6 {
				return errors.New("a clock needs a unit, such as 1.4GHz, or is a factor, such as 1.2x")
			}
			f = f / 1e7 / float64(*v)
		}
		n := math.Round(float64(*v) * f)
		if n < 1 || n > 100_000 {
			return fmt.Errorf("%v MHz is not between 10 MHz and 1 THz", n*10)
		}
		*v = int(n)
		return nil
	}
	if !s.Number {
		return fmt.Errorf("%q is not a clock", s.Text)
	}
	switch engine {
	case "pe":
		// The array's clock is the engine's; that of the documented formulas of
		// PE instructions goes with it.
		was := c.PEArray
		if err := one(&c.PEArray); err != nil {
			return err
		}
		c.PE = max(1, int(math.Round(float64(c.PE)*float64(c.PEArray)/float64(was))))
		return nil
	case "act":
		return one(&c.Activation)
	case "dve":
		return one(&c.DVE)
	case "pool":
		return one(&c.Pool)
	}
	return one(&c.SP)
}

func (p *plan) dmaEngines(s Setting) error {
	n, err := whole(s, max(p.w.Machine.Memory.DMAEngines, 1))
	if err != nil {
		return err
	}
	p.w.Machine.Memory.DMAEngines = n
	p.w.Machine.Reference.DMA.Engines = n
	return nil
}

// rateConstant is the calibrated model's rate of a DMA engine.
const rateConstant = "dma.bytes_per_ns"

func (p *plan) dmaRate(s Setting) error {
	m := p.w.Machine
	was := m.Memory.DMARate
	v, err := s.on(was)
	if err != nil {
		return err
	}
	if !(v > 0) || !(was > 0) {
		return fmt.Errorf("%v bytes per ns is not above 0", v)
	}
	m.Memory.DMARate = v
	d := &m.Reference.DMA
	d.Div = max(1, int(math.Round(float64(d.Div)*v/was)))
	d.Div8 = max(1, int(math.Round(float64(d.Div8)*v/was)))
	if c, ok := m.Calibrated.Constants[rateConstant]; ok {
		c.Value *= v / was
		m.Calibrated.Constants[rateConstant] = c
	}
	return nil
}

// queueDepth sets the depth of DMA rings: of all, or of the queue or queue
// class with the given name.
func (p *plan) queueDepth(name string, s Setting) error {
	m, mod := p.w.Machine, p.w.Module
	found := false
	set := func(was uint32) (uint32, error) {
		v, err := whole(s, int(max(was, 1)))
		found = true
		return uint32(v), err
	}
	for k := range m.Reference.Queues {
		q := &m.Reference.Queues[k]
		if name == "" || q.Name == name {
			d, err := set(q.Depth)
			if err != nil {
				return err
			}
			q.Depth = d
		}
	}
	depth := ecs.NewColumn[uint32](mod.Queues.Depth.Name())
	for k := range mod.Queues.Len() {
		d := mod.Queues.Depth.At(k)
		if name == "" && d > 0 || name != "" && mod.Symbols.String(mod.Queues.Name.At(k)) == name {
			var err error
			if d, err = set(d); err != nil {
				return err
			}
		}
		depth.Append(d)
	}
	mod.Queues.Depth = depth
	if !found {
		return fmt.Errorf("no queue or queue class is called %q (%s)", name, p.queues())
	}
	if p.w.Config.Model != cost.Reference {
		p.notes = append(p.notes, "rings of DMA queues are a rule of the reference model")
	}
	return nil
}

// queues lists some of the queues and queue classes for an error.
func (p *plan) queues() string {
	const most = 8
	var out []string
	for _, q := range p.w.Machine.Reference.Queues {
		out = append(out, q.Name)
	}
	mod := p.w.Module
	for k := 0; k < mod.Queues.Len() && len(out) <= 2*most; k++ {
		if n := mod.Symbols.String(mod.Queues.Name.At(k)); !slices.Contains(out, n) {
			out = append([]string{n}, out...)
		}
	}
	if len(out) > most {
		out = append(out[:most], "…")
	}
	return strings.Join(out, ", ")
}

// rule turns a rule of the reference model off or on.
func (p *plan) rule(name string, s Setting) error {
	on := s.Text == "on"
	if !on && s.Text != "off" {
		return errors.New("a rule is on or off")
	}
	if p.w.Config.Model != cost.Reference {
		return fmt.Errorf("rules are the reference model's, not the %s model's", p.w.Config.Model)
	}
	var names []string
	for _, r := range place.Table() {
		if r.Switch == nil {
			continue
		}
		if r.Name == name {
			p.rules = append(p.rules, func(all *place.Rules) { *r.Switch(all) = on })
			return nil
		}
		names = append(names, r.Name)
	}
	return fmt.Errorf("no rule is called %q; there are %s", name, strings.Join(names, ", "))
}

// latency scales what instructions of an engine or opcode take.
func (p *plan) latency(what, name string, s Setting) error {
	if !s.Number || !s.Factor {
		return errors.New("it takes a factor or a change, such as 0.8x or -20%")
	}
	m := p.w.Module
	x := scaling{issue: s.Value, result: s.Value}
	if what == "issue" {
		x.result = 1
	}
	if e, ok := engineNamed(name); ok {
		x.engine, x.byEngine = e, true
	} else {
		found := false
		for op := range m.NumOpcodes() {
			if components.Named(m.OpcodeName(components.Opcode(op)), name) {
				x.opcode, found = components.Opcode(op), true
			}
		}
		for l := 0; l < m.Lanes.Len() && !found; l++ {
			if strings.EqualFold(m.LaneName(uint16(l)), name) {
				x.lanes = make([]bool, m.Lanes.Len())
				x.lanes[l], found = true, true
			}
		}
		if !found {
			return fmt.Errorf("%q is neither an engine (PE, DVE, Activation, Pool, SP, DMA) nor a lane or an opcode of the module; query INPUT --by opcode and --by lane list them", name)
		}
	}
	if p.w.Config.Model == cost.Calibrated {
		if x.lanes != nil {
			return fmt.Errorf("the calibrated model has costs for engines and opcodes, not for the lane %q alone", name)
		}
		return p.calibratedLatency(x, name)
	}
	p.scale = append(p.scale, x)
	return nil
}

// engineNamed knows the short names too.
func engineNamed(name string) (components.Engine, bool) {
	switch strings.ToLower(name) {
	case "act":
		return components.Activation, true
	case "pe", "dve", "pool", "sp", "dma", "activation", "tensor", "vector", "scalar", "gpsimd", "sync":
		return components.ParseEngine(name)
	}
	return 0, false
}

// calibratedLatency scales the entries of the calibrated model, which costs
// instructions by itself.
func (p *plan) calibratedLatency(x scaling, name string) error {
	c := &p.w.Machine.Calibrated
	f, lat := x.issue, x.result
	touched := false
	for key, op := range c.Ops {
		when, err := machine.ParseOpCase(key)
		if err != nil {
			return err
		}
		if x.byEngine && when.Engine != x.engine.String() || !x.byEngine && when.Opcode != cost.CalibratedOpName(name) {
			continue
		}
		touched = true
		for _, v := range []*float64{&op.PerElem, &op.Base, &op.Block, &op.Min, &op.SpacingBase} {
			*v *= f
		}
		op.LatencyNs *= lat
		c.Ops[key] = op
	}
	switch {
	case x.byEngine && x.engine == components.PE:
		// Matmuls stream columns at the array's clock.
		touched = true
		p.w.Machine.Clock.PEArray = max(1, int(math.Round(float64(p.w.Machine.Clock.PEArray)/f)))
		for key, v := range c.Constants {
			if strings.HasPrefix(key, "pe.") && strings.HasSuffix(key, "_ns") {
				v.Value *= lat
				c.Constants[key] = v
			}
		}
	case x.byEngine && x.engine == components.DMA:
		touched = true
		for key, v := range c.Constants {
			switch {
			case key == rateConstant:
				v.Value /= f
			case strings.HasPrefix(key, "dma.") && strings.HasSuffix(key, "_ns"):
				v.Value *= lat
			}
			c.Constants[key] = v
		}
	}
	if !touched {
		return fmt.Errorf("the calibrated model has no cost of its own for %q; pe.clock and the constants change the PE and the DMA", name)
	}
	return nil
}

// field sets a field of the machine description by its path: a number of a
// struct in place, all else by way of YAML.
func (p *plan) field(s Setting) error {
	if done, err := p.number(s); done {
		return err
	}
	return p.fieldYAML(s)
}

// fieldYAML sets a field by writing the description, changing the text and
// reading it.
func (p *plan) fieldYAML(s Setting) error {
	text, err := yaml.Marshal(p.w.Machine)
	if err != nil {
		return err
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return err
	}
	n := find(doc.Content[0], s.Name)
	if n == nil {
		return errUnknown
	}
	if n.Kind != yaml.ScalarNode {
		return errors.New("this part of the machine description has fields of its own; name one")
	}
	var was float64
	if n.Decode(&was) == nil && (n.Tag == "!!int" || n.Tag == "!!float") {
		v, err := s.on(was)
		if err != nil {
			return err
		}
		if n.Tag == "!!int" && v == math.Trunc(v) {
			n.Value = fmt.Sprintf("%d", int64(v))
		} else {
			n.Value = trim(v)
			n.Tag = "!!float"
		}
	} else {
		n.Value, n.Tag, n.Style = s.Text, "", 0
	}
	if text, err = yaml.Marshal(&doc); err != nil {
		return err
	}
	m, err := machine.Parse("with "+s.Name, text)
	if err != nil && n.Tag == "!!float" {
		// The field is a whole number.
		var v float64
		if n.Decode(&v) == nil {
			n.Value, n.Tag = fmt.Sprintf("%d", int64(math.Round(v))), "!!int"
			if text, err = yaml.Marshal(&doc); err == nil {
				m, err = machine.Parse("with "+s.Name, text)
			}
		}
	}
	if err != nil {
		return err
	}
	p.w.Machine = m
	return nil
}

// find walks a mapping along a path whose keys are joined by dots; keys may
// hold dots themselves.
func find(n *yaml.Node, path string) *yaml.Node {
	if path == "" {
		return n
	}
	if n.Kind == yaml.SequenceNode {
		head, rest, _ := strings.Cut(path, ".")
		for k, c := range n.Content {
			name := find(c, "name")
			if fmt.Sprint(k) == head || name != nil && name.Value == head {
				return find(c, rest)
			}
		}
		return nil
	}
	if n.Kind != yaml.MappingNode {
		return nil
	}
	for k := 0; k+1 < len(n.Content); k += 2 {
		rest, ok := strings.CutPrefix(path, n.Content[k].Value)
		if !ok || rest != "" && rest[0] != '.' {
			continue
		}
		if f := find(n.Content[k+1], strings.TrimPrefix(rest, ".")); f != nil {
			return f
		}
	}
	return nil
}

// needsEdges refuses changes of dependencies where the model follows the
// semaphores of the input instead.
func (p *plan) needsEdges(name string) error {
	if p.w.BySemaphores() {
		return fmt.Errorf("the calibrated model follows the semaphores of this input, which %s does not change; --model reference follows its dependencies", name)
	}
	return nil
}

// constraint returns the rule that drop names: by its constraint as explain
// lists it, the kind of its dependencies, or its cause.
func constraint(name string) (place.Rule, bool) {
	for _, r := range place.Table() {
		if (r.Edges != "" || r.Switch != nil) && (strings.EqualFold(r.Constraint, name) || name == cmp.Or(r.Edges, r.Cause.String())) {
			return r, true
		}
	}
	return place.Rule{}, false
}

// drop leaves dependencies out.
func (p *plan) drop(s Setting) error {
	kind, filter, some := strings.Cut(s.Text, ":")
	if some {
		name, ok := strings.CutPrefix(filter, "buffer=")
		name = unquote(name)
		if r, _ := constraint(kind); r.Cause != components.CauseAnti || !ok || name == "" {
			return errors.New("write drop=anti:buffer=NAME")
		}
		p.edges = append(p.edges, func(ctx context.Context, p *plan) error {
			t, err := antidep.Buffers(ctx, p.w.Module, index.AntiEdges(p.w), 1)
			if err != nil {
				return err
			}
			rows, err := t.Find(p.w.Module, name)
			if err != nil {
				return err
			}
			antidep.DropBuffers(p.w, t, rows)
			return nil
		})
		return p.needsEdges("drop")
	}
	var classes []uint8
	for _, k := range strings.Split(kind, "+") {
		k = unquote(strings.TrimSpace(k))
		if k == "" {
			return errors.New("a name is missing: write drop=anti, or several as drop=anti+output")
		}
		r, ok := constraint(k)
		switch {
		case !ok:
			return fmt.Errorf("%q is not anti, output or ordered, nor a constraint that explain names (%s)", k, constraintNames())
		case r.Switch != nil:
			if err := p.rule(r.Name, Setting{Name: "rule." + r.Name, Text: "off"}); err != nil {
				return err
			}
		case r.Cause == components.CauseAnti:
			if err := p.needsEdges("drop"); err != nil {
				return err
			}
			p.runB = true
		default:
			classes = append(classes, r.Class)
		}
	}
	if len(classes) == 0 {
		return nil
	}
	p.edges = append(p.edges, without(classes...))
	return p.needsEdges("drop")
}

// without leaves out the dependencies of some classes.
func without(classes ...uint8) func(context.Context, *plan) error {
	return func(_ context.Context, p *plan) error {
		scenario.Without(p.w, func(_ uint32, _ int, word uint32) bool {
			return slices.Contains(classes, uint8(word>>ecs.ClassShift))
		})
		return nil
	}
}

func constraintNames() string {
	var out []string
	for _, r := range place.Table() {
		if r.Edges != "" || r.Switch != nil {
			out = append(out, r.Constraint)
		}
	}
	return strings.Join(out, ", ")
}

// unquote takes the quotes off a name that a person put into some.
func unquote(s string) string {
	if n := len(s); n > 1 && (s[0] == '"' || s[0] == '\'') && s[n-1] == s[0] {
		return s[1 : n-1]
	}
	return s
}
