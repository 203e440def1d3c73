package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"perfsim/components"
	"perfsim/io/neuron/neff"
	"perfsim/io/neuron/pttf"
)

func newNEFFCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "neff",
		Short: "Look into NEFF files, take them apart, add the trace package",
		Long: `A NEFF is what the compiler hands to the runtime: a header of 1024 bytes and a
tar. perfsim leaves file.perf-sim beside it by default; 'neff add' puts it in.`,
		Example: `  perfsim neff info file.neff
  perfsim neff list file.neff
  perfsim neff extract -C dir file.neff
  perfsim neff add -o with-traces.neff file.neff out/file.perf-sim
  perfsim neff debug file.neff debug_info/debug_info_backend.PE.0.dbg`,
	}
	c.AddCommand(newNEFFInfo(), newNEFFList(), newNEFFExtract(), newNEFFAdd(), newNEFFAddMetrics(), newNEFFCreate(), newNEFFDebug())
	return c
}

// neffReport is the output of `neff info --json`.
type neffReport struct {
	File          string       `json:"file"`
	Size          int64        `json:"size"`
	PkgVersion    uint64       `json:"pkg_version"`          // version of the package format
	HeaderSize    uint64       `json:"header_size"`          // bytes of the header
	DataSize      uint64       `json:"data_size"`            // bytes of the archive, as the header has them
	Trailing      int64        `json:"trailing_bytes"`       // bytes behind the archive
	VersionMajor  uint64       `json:"neff_version_major"`   // version of the compiler's format, major
	VersionMinor  uint64       `json:"neff_version_minor"`   // the same, minor
	BuildVersion  string       `json:"neff_build_version"`   // build of the compiler
	NumTPB        uint32       `json:"num_tpb"`              // cores that the program is for
	Hash          string       `json:"hash"`                 // digest that the header has, "" where it has none
	HashOK        bool         `json:"hash_ok"`              // whether the archive has this digest
	HashError     string       `json:"hash_error,omitempty"` // why the digest cannot be checked
	UUID          string       `json:"uuid"`                 // id of the file
	Name          string       `json:"name"`                 // name of the program
	RequestedTPB  uint32       `json:"requested_tpb_count"`  // cores that the program asks for
	TPBs          []int        `json:"tpb_per_node"`         // up to the last that is not 0
	FeatureBits   string       `json:"feature_bits"`         // features that a loader must know, as bits
	Features      []string     `json:"features"`             // the same by name
	LNCSize       uint32       `json:"lnc_size"`             // physical cores of a logical one
	Gzipped       bool         `json:"gzipped"`              // whether the archive is gzipped
	Members       int          `json:"members"`              // files of the archive
	MemberBytes   int64        `json:"member_bytes"`         // bytes of these files
	HasTraces     bool         `json:"has_traces"`           // a debug_info_pttf that is a trace package
	Debug         []debugBrief `json:"debug_info"`           // what the debug files hold
	LoaderRefuses []string     `json:"loader_would_refuse"`  // why a loader would refuse the file
}

// debugBrief sums up one debug information member.
type debugBrief struct {
	Member       string         `json:"member"`
	Layer        string         `json:"layer"`            // layer that the member is of
	Engine       string         `json:"engine,omitempty"` // engine of the debug file
	Size         int64          `json:"size"`
	Content      string         `json:"content"`                // debug info, trace package, unknown
	Traces       int            `json:"traces,omitempty"`       // records of the source program
	Instructions int            `json:"instructions,omitempty"` // instruction records
	Spills       int            `json:"spills,omitempty"`
	Transposes   int            `json:"transposes,omitempty"`       // transposes that the compiler put in
	Dataflow     map[string]int `json:"dataflow_edges,omitempty"`   // edges of data, by kind
	Scheduling   map[string]int `json:"scheduling_edges,omitempty"` // edges of order, by kind
	Error        string         `json:"error,omitempty"`
}

func newNEFFInfo() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "info FILE",
		Short: "Print the header, check hash and payload",
		Long: `info prints every field of the header, compares the payload with its hash, reads
all members and sums up the debug information: instructions and dependence
kinds by engine and layer. A wrong hash and a broken payload give status 1.`,
		Example: "  perfsim neff info file.neff\n  perfsim neff info --json file.neff | jq .features",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			f, err := neff.Open(args[0])
			if err != nil {
				return notA(c.Context(), "NEFF", args[0], err)
			}
			defer f.Close()
			rep, err := newNEFFReport(c.Context(), args[0], f)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			if asJSON {
				err = writeJSON(c.OutOrStdout(), rep)
			} else {
				err = rep.print(c.OutOrStdout())
			}
			if err == nil && rep.HashError != "" {
				err = fmt.Errorf("%s: %s", args[0], rep.HashError)
			}
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func newNEFFReport(ctx context.Context, path string, f *neff.File) (*neffReport, error) {
	h := &f.Header
	r := &neffReport{
		File: path, Size: f.Size, PkgVersion: h.PkgVersion, HeaderSize: h.HeaderSize, DataSize: h.DataSize, Trailing: f.Trailing(),
		VersionMajor: h.VersionMajor, VersionMinor: h.VersionMinor, BuildVersion: neff.Text(h.BuildVersion[:]), NumTPB: h.NumTPB,
		UUID: neff.FormatUUID(h.UUID), Name: neff.Text(h.Name[:]), RequestedTPB: h.RequestedTPB,
		FeatureBits: fmt.Sprintf("%#x", h.FeatureBits), Features: h.Features(), LNCSize: h.LNCSize, Gzipped: f.Gzipped(),
		LoaderRefuses: h.LoaderComplaints(), Debug: []debugBrief{}, TPBs: []int{},
	}
	r.Hash = fmt.Sprintf("%x", h.Hash[:])
	if h.PkgVersion == 2 {
		r.Hash = fmt.Sprintf("%x", h.Hash[:16]) // MD5; what follows is padding
	}
	last := len(h.TPBPerNode)
	for last > 0 && h.TPBPerNode[last-1] == 0 {
		last--
	}
	for _, n := range h.TPBPerNode[:last] {
		r.TPBs = append(r.TPBs, int(n))
	}
	if r.Features == nil {
		r.Features = []string{}
	}
	if r.LoaderRefuses == nil {
		r.LoaderRefuses = []string{}
	}
	switch err := f.CheckHash(ctx); {
	case err == nil:
		r.HashOK = true
	case errors.Is(err, neff.ErrNoHash):
		r.Hash = ""
	case ctx.Err() != nil:
		return nil, err
	default:
		r.HashError = err.Error()
	}
	err := f.Walk(ctx, neff.DefaultLimits, func(e neff.Entry, data io.Reader) error {
		r.Members++
		r.MemberBytes += e.Size
		if n, ok := neff.ParseDebugName(e.Name); ok && e.Kind == pttf.Regular {
			b := brief(ctx, e, n, data)
			r.HasTraces = r.HasTraces || b.Traces > 0
			r.Debug = append(r.Debug, b)
		}
		return nil
	})
	return r, err
}

// brief reads one debug information member. That it is neither of the two
// known contents is reported and no error: the framework layer's own format is
// not public.
func brief(ctx context.Context, e neff.Entry, n neff.DebugName, data io.Reader) debugBrief {
	b := debugBrief{Member: e.Name, Layer: strings.TrimPrefix(n.Layer.String(), "debug_info_"), Size: e.Size, Content: "unknown"}
	if n.Engine != components.Unassigned {
		b.Engine = n.Engine.String()
	}
	if n.Layer == neff.LayerFramework {
		if members, err := pttf.List(ctx, data, pttf.DefaultLimits); err == nil {
			b.Content, b.Traces = "trace package", len(members)
		}
		return b
	}
	flow, sched := map[string]int{}, map[string]int{}
	d, err := neff.ReadDebugInfo(ctx, data, func(in *neff.DebugInstruction) error {
		switch in.Type {
		case neff.SpillInstruction:
			b.Spills++
		case neff.TransposeInstruction:
			b.Transposes++
		}
		for _, dep := range in.Dataflow {
			flow[dep.Kind.String()]++
		}
		for _, dep := range in.Scheduling {
			sched[dep.Kind.String()]++
		}
		return nil
	})
	if err != nil {
		b.Error = err.Error()
		return b
	}
	b.Content, b.Instructions, b.Dataflow, b.Scheduling = "debug info", d.NumInstructions, flow, sched
	if b.Engine == "" && d.Engine != components.Unassigned {
		b.Engine = d.Engine.String()
	}
	return b
}

func (r *neffReport) print(w io.Writer) error {
	tw := newTable(w)
	row := func(key, format string, args ...any) { sayf(tw, key+"\t"+format+"\n", args...) }
	row("file", "%s, %d bytes", printable(r.File), r.Size)
	what := map[bool]string{true: "gzipped tar", false: "plain tar"}[r.Gzipped]
	row("package version", "%d (%s)", r.PkgVersion, what)
	row("NEFF version", "%d.%d", r.VersionMajor, r.VersionMinor)
	row("build version", "%s", printable(r.BuildVersion))
	row("name", "%s", printable(r.Name))
	row("uuid", "%s", r.UUID)
	row("data size", "%d", r.DataSize)
	state := "agrees with the data"
	if !r.HashOK {
		state = "WRONG: " + r.HashError
	}
	if r.Hash == "" {
		row("hash", "none in the header: the data is not checked")
	} else {
		row("hash", "%s, %s", r.Hash, state)
	}
	if r.Trailing > 0 {
		row("after the data", "%d bytes", r.Trailing)
	}
	row("TPBs", "%d, requested %d, per node %v", r.NumTPB, r.RequestedTPB, r.TPBs)
	row("logical core size", "%d", r.LNCSize)
	row("features", "%s %s", r.FeatureBits, strings.Join(r.Features, ", "))
	row("members", "%d, %s", r.Members, humanize.IBytes(uint64(r.MemberBytes)))
	for _, c := range r.LoaderRefuses {
		row("a loader refuses", "%s", c)
	}
	for _, b := range r.Debug {
		row("debug info", "%s", b.text())
	}
	return tw.Flush()
}

func (b debugBrief) text() string {
	s := printable(b.Member) + ": "
	switch {
	case b.Error != "":
		return s + "cannot be read: " + printable(b.Error)
	case b.Content == "trace package":
		return s + "trace package, " + count(b.Traces, "trace")
	case b.Content == "unknown":
		return s + b.Layer + " layer, " + humanize.IBytes(uint64(b.Size)) + ", no trace package"
	}
	s += b.Layer
	if b.Engine != "" {
		s += " " + b.Engine
	}
	s += ", " + count(b.Instructions, "instruction")
	for _, list := range []struct {
		name string
		n    map[string]int
	}{{"dataflow", b.Dataflow}, {"scheduling", b.Scheduling}} {
		var parts []string
		for k := components.Invalid; k < components.NumEdgeKinds; k++ {
			if n := list.n[k.String()]; n > 0 {
				parts = append(parts, fmt.Sprintf("%d %s", n, k))
			}
		}
		if parts != nil {
			s += ", " + list.name + " " + strings.Join(parts, " ")
		}
	}
	return s
}

func newNEFFList() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "list FILE",
		Aliases: []string{"ls"},
		Short:   "List the members",
		Example: "  perfsim neff list file.neff",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			f, err := neff.Open(args[0])
			if err != nil {
				return notA(c.Context(), "NEFF", args[0], err)
			}
			defer f.Close()
			members, err := f.List(c.Context(), neff.DefaultLimits)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			if !asJSON {
				return printMembers(c.OutOrStdout(), members, false)
			}
			rows := make([]memberRow, len(members))
			for i, e := range members {
				rows[i] = newMemberRow(e)
				if n, ok := neff.ParseDebugName(e.Name); ok {
					rows[i].Layer = strings.TrimPrefix(n.Layer.String(), "debug_info_")
				}
			}
			return writeJSON(c.OutOrStdout(), rows)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func newNEFFExtract() *cobra.Command {
	var x extractFlags
	var asJSON bool
	c := &cobra.Command{
		Use:   "extract [flags] FILE [MEMBER...]",
		Short: "Extract members",
		Long: `extract writes the members, or those that are named, below a folder: all or
nothing, never outside it, and without replacing files (--overwrite does). It
does not compare the hash; 'neff info' does.`,
		Example: `  perfsim neff extract -C dir file.neff
  perfsim neff extract file.neff debug_info_pttf
  perfsim unpack --list debug_info_pttf`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			lim, err := x.limits(neff.DefaultLimits)
			if err != nil {
				return err
			}
			f, err := neff.Open(args[0])
			if err != nil {
				return notA(c.Context(), "NEFF", args[0], err)
			}
			defer f.Close()
			p := newProgress(c.ErrOrStderr(), x.quiet)
			defer p.close()
			opt := x.options(args[1:])
			p.start("extracting", 0, true)
			var done int64
			opt.Progress = func(n int64) { done += n; p.set(done) }
			files, err := f.Extract(c.Context(), x.dir, lim, opt)
			if err != nil {
				return extractError(args[0], err)
			}
			p.close()
			return printExtracted(c.OutOrStdout(), x.dir, files, asJSON)
		},
	}
	x.add(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func newNEFFAdd() *cobra.Command {
	var out, name string
	var part debugNameFlags
	var inPlace, asJSON bool
	var opt neff.AddOptions
	c := &cobra.Command{
		Use:   "add [flags] FILE MEMBER-FILE",
		Short: "Add a file to a NEFF, by default as debug_info_pttf",
		Long: `add writes a NEFF with one more member. Header and tar keep every byte but the
data size, the hash and the new member; compression is done anew. The member is
named debug_info_pttf, where the trace package belongs, or by --name, or by the
parts of a debug information name: --layer, --engine, --counter and --ext.
Compilers may write their own debug information under that name: it is replaced
with --replace only. Whether a runtime accepts members that it does not know is
not documented; a package beside the NEFF is the safe choice.`,
		Example: `  perfsim neff add -o with-traces.neff file.neff out/file.perf-sim
  perfsim neff add --in-place --replace file.neff out/file.perf-sim
  perfsim neff add --layer backend --engine PE --counter 0 --ext dbg \
      -o x.neff file.neff pe.dbg`,
		Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case inPlace == (out != ""):
				return usagef("give either -o FILE or --in-place")
			case opt.Level < 1 || opt.Level > 9:
				return usagef("--level %d is not within 1 to 9", opt.Level)
			}
			if inPlace {
				out = args[0]
			}
			member, err := part.name(c, name)
			if err != nil {
				return err
			}
			if member == neff.PTTFName() && !opt.Force {
				if _, err := pttf.ListFile(c.Context(), args[1], pttf.DefaultLimits); err != nil {
					return fmt.Errorf("no trace package (--force adds it nevertheless): %w", err)
				}
			}
			m, err := neff.FileMember(member, args[1])
			if err != nil {
				return err
			}
			res, err := neff.Add(c.Context(), args[0], m, out, opt)
			if errors.Is(err, neff.ErrMemberExists) {
				err = fmt.Errorf("%w; --replace puts the new one in its place", err)
			}
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(c.OutOrStdout(), struct {
					File     string `json:"file"`
					Member   string `json:"member"`
					Replaced bool   `json:"replaced"` // whether a file of this name was there
					Size     int64  `json:"size"`
					DataSize uint64 `json:"data_size"`
				}{out, member, res.Replaced, res.Size, res.Header.DataSize})
			}
			verb := "added"
			if res.Replaced {
				verb = "replaced"
			}
			_, err = sayf(c.OutOrStdout(), "%s: %s %s (%s), now %s\n", out, verb, member,
				humanize.IBytes(uint64(m.Size)), humanize.IBytes(uint64(res.Size)))
			return err
		},
	}
	fl := c.Flags()
	fl.StringVarP(&out, "output", "o", "", "the NEFF to write")
	fl.BoolVar(&inPlace, "in-place", false, "replace FILE by the new NEFF")
	fl.StringVar(&name, "name", "", "name of the member (default debug_info_pttf)")
	part.add(c)
	fl.BoolVar(&opt.Replace, "replace", false, "replace a member of that name")
	fl.BoolVar(&opt.Force, "force", false, "accept a wrong hash of FILE, and any content for debug_info_pttf")
	fl.IntVar(&opt.Level, "level", 1, "gzip level, 1 (the documented one) to 9")
	fl.BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// debugNameFlags name a member by the parts of a debug information name.
type debugNameFlags struct {
	layer, engine, ext string
	counter            int
	formula            bool
}

func (d *debugNameFlags) add(c *cobra.Command) {
	fl := c.Flags()
	fl.StringVar(&d.layer, "layer", "", "pttf, hlo, penguin, backend or asm")
	fl.StringVar(&d.engine, "engine", "", "engine part of the name, such as PE; Unassigned has none")
	fl.BoolVar(&d.formula, "formula", false, "name as the compiler's formula is documented, without anything between the parts, instead of as real files are named")
	fl.IntVar(&d.counter, "counter", neff.NoCounter, "counter part of the name")
	fl.StringVar(&d.ext, "ext", "", "extension of the name, such as dbg")
}

// name returns the member's name from --name or from the parts.
func (d *debugNameFlags) name(c *cobra.Command, name string) (string, error) {
	parts := d.layer != "" || d.engine != "" || d.ext != "" || d.formula || c.Flags().Changed("counter")
	switch {
	case name != "" && parts:
		return "", usagef("--name and the parts of a debug information name exclude each other")
	case name != "":
		return name, nil
	case c.Flags().Changed("counter") && d.counter < 0:
		return "", usagef("--counter %d is negative", d.counter)
	}
	n := neff.DebugName{Counter: d.counter, Ext: d.ext}
	if d.layer != "" {
		var ok bool
		if n, ok = neff.ParseDebugName("debug_info_" + d.layer); !ok || n.String() != "debug_info_"+d.layer {
			return "", usagef("--layer %q is not pttf, hlo, penguin, backend or asm", d.layer)
		}
		n.Counter, n.Ext = d.counter, d.ext
	}
	if d.engine != "" {
		e, ok := components.ParseEngine(d.engine)
		if !ok {
			return "", usagef("--engine %q is no engine", d.engine)
		}
		n.Engine = e
	}
	if d.formula {
		return n.Formula(), nil
	}
	return n.String(), nil
}

func newNEFFCreate() *cobra.Command {
	var out, name string
	var version uint64
	var opt neff.CreateOptions
	c := &cobra.Command{
		Use:   "create [flags] DIR",
		Short: "Write a NEFF from the files of a folder",
		Long: `create puts every file below DIR into a NEFF, sorted by name. It is for tests
and for repairing what 'neff extract' took apart: the header is a new one, and
only the compiler knows what belongs into most of its fields.`,
		Example: "  perfsim neff create -o file.neff dir",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case out == "":
				return usagef("-o FILE is needed")
			case version != 1 && version != 2:
				return usagef("--pkg-version %d is not 1 or 2", version)
			case opt.Level < 1 || opt.Level > 9:
				return usagef("--level %d is not within 1 to 9", opt.Level)
			}
			if name == "" {
				name = filepath.Base(out)
			}
			h, err := neff.NewHeader(name)
			if err != nil {
				return err
			}
			h.PkgVersion = version
			members, err := neff.DirMembers(args[0])
			if err == nil && len(members) == 0 {
				err = fmt.Errorf("%s: no files", args[0])
			}
			if err != nil {
				return err
			}
			if _, err := neff.Create(c.Context(), out, h, members, opt); err != nil {
				return err
			}
			fi, err := os.Stat(out)
			if err != nil {
				return err
			}
			_, err = sayf(c.OutOrStdout(), "%s: %s, %s\n", out, count(len(members), "member"), humanize.IBytes(uint64(fi.Size())))
			return err
		},
	}
	fl := c.Flags()
	fl.StringVarP(&out, "output", "o", "", "the NEFF to write")
	fl.StringVar(&name, "name", "", "name in the header (default: that of the file)")
	fl.Uint64Var(&version, "pkg-version", 2, "2: gzipped tar and MD5; 1: plain tar and SHA-256")
	fl.IntVar(&opt.Level, "level", 1, "gzip level, 1 (the documented one) to 9")
	return c
}
