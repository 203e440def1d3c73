//go:build unix

package suite

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"
)

// exponentFrom is the smallest size whose time counts for the growth of a
// stage: what starts a process counts below.
const exponentFrom = 100_000

// Markdown writes the report that people read.
func (r *Results) Markdown(w io.Writer) error {
	p := &printer{w: w}
	m := r.Machine
	p.line("# Benchmarks")
	p.line("")
	p.line("Written by `go run ./cmd/perfsim bench self`; not edited. The figures behind are in `bench/results.txt`, in the form that benchstat reads.")
	p.line("")
	p.line("%s, %s; %s, %d cores, %s; %s; revision %s.", m.Date.Format("2006-01-02"), m.System, m.CPU, m.Cores, humanize.IBytes(m.Memory), m.Go, or(m.Version, "not known"))
	p.line("Times are CPU times, the least disturbed of several; ratios are medians of figures taken in turns. Generated modules: `perfsim gen`, about three dependencies each.")
	r.memoryTable(p)
	r.kernelTable(p)
	r.systemTable(p)
	r.textTable(p)
	r.readerTable(p)
	r.processTable(p)
	r.commandTable(p)
	r.fileTable(p)
	r.peerTable(p)
	if len(r.Notes) > 0 {
		p.line("")
		p.line("## Left out")
		p.line("")
		for _, n := range r.Notes {
			p.line("- %s", n)
		}
	}
	return p.err
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// printer keeps the first error.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

func (p *printer) heading(title, text string) {
	p.line("")
	p.line("## %s", title)
	p.line("")
	if text != "" {
		p.line("%s", text)
		p.line("")
	}
}

// table writes rows under a head; all columns but the first hold numbers.
func (p *printer) table(head []string, rows [][]string) {
	p.line("| %s |", strings.Join(head, " | "))
	p.line("|%s", " --- |"+strings.Repeat(" ---: |", len(head)-1))
	for _, row := range rows {
		p.line("| %s |", strings.Join(row, " | "))
	}
}

func thousands(n int) string { return humanize.Comma(int64(n)) }

// number writes three significant digits.
func number(v float64) string {
	switch {
	case v >= 100:
		return humanize.Comma(int64(v + 0.5))
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// names returns the names of samples with a prefix, in the order taken.
func (r *Results) names(prefix string) []string {
	var out []string
	for _, s := range r.Samples {
		if name, ok := strings.CutPrefix(s.Name, prefix); ok && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// sizesOf returns the sizes at which any sample with the prefix was taken.
func (r *Results) sizesOf(prefix string) []int {
	var out []int
	for _, s := range r.Samples {
		if strings.HasPrefix(s.Name, prefix) && !slices.Contains(out, s.N) {
			out = append(out, s.N)
		}
	}
	slices.Sort(out)
	return out
}

// bySize writes a table with a row a name and a column a size.
func (r *Results) bySize(p *printer, first, prefix string, names []string, exponent bool, value func(*Sample) string) {
	sizes := r.sizesOf(prefix)
	head := []string{first}
	for _, n := range sizes {
		head = append(head, thousands(n))
	}
	if exponent {
		head = append(head, "exponent")
	}
	var rows [][]string
	for _, name := range names {
		row := []string{name}
		for _, n := range sizes {
			cell := ""
			if s := r.Find(prefix+name, n); s != nil {
				cell = value(s)
			}
			row = append(row, cell)
		}
		if exponent {
			cell := ""
			if e, ok := r.Exponent(prefix+name, exponentFrom); ok {
				cell = strconv.FormatFloat(e, 'f', 2, 64)
			}
			row = append(row, cell)
		}
		rows = append(rows, row)
	}
	p.table(head, rows)
}

func best(s *Sample) string   { return number(s.Best()) }
func median(s *Sample) string { return number(s.Median()) }

func (r *Results) memoryTable(p *printer) {
	p.heading("The machine's memory", "")
	var rows [][]string
	for _, name := range r.names("memory/") {
		s := r.Samples[slices.IndexFunc(r.Samples, func(s *Sample) bool { return s.Name == "memory/"+name })]
		rows = append(rows, []string{name, number(s.Best()), number(s.Median()), s.Unit})
	}
	p.table([]string{"one core", "best", "median", "unit"}, rows)
}

func (r *Results) kernelTable(p *printer) {
	p.heading("The placement kernel", "Both runs of one block on eleven lanes, 2.9 edges an instruction, one in twenty to any instruction before; ns of CPU an instruction. "+
		"The C kernels (`bench/self/kernel/c`) work on the same arrays, those called ell on edges padded beforehand, and find the same times. The ratio is that of each round.")
	r.bySize(p, "ns an instruction", "kernel/", r.names("kernel/"), false, func(s *Sample) string {
		if s.Unit == "ratio" {
			return "**" + median(s) + "**"
		}
		return best(s)
	})
}

func (r *Results) systemTable(p *printer) {
	p.heading("Every system", "ns of CPU an instruction, one goroutine. Fresh memory counts what the system takes to put pages behind the result; "+
		"the exponent is that of time in size from 100,000 instructions on.")
	r.bySize(p, "ns an instruction", "system/", r.names("system/"), true, best)
	p.line("")
	r.bySize(p, "memory", "bytes/", r.names("bytes/"), false, best)
	read := r.Find("memory/read", 256<<20)
	if place := r.largest("system/place"); read != nil && place != nil {
		// 18 bytes of columns, edges and offsets, costs, the times written
		// (and read first, as caches do).
		p.line("")
		p.line("One placement reads 14 bytes of columns, 8 of costs and 16 of edges an instruction and writes 16, which the cache reads first: %s of memory traffic at %s instructions, %s of what one core reads.",
			number(70/place.Best())+" GB/s", thousands(place.N), number(100*70/place.Best()/read.Best())+" %")
	}
}

// largest returns the sample of a name at the largest size.
func (r *Results) largest(name string) *Sample {
	var out *Sample
	for _, s := range r.Samples {
		if s.Name == name && (out == nil || s.N > out.N) {
			out = s
		}
	}
	return out
}

func (r *Results) textTable(p *printer) {
	var names []string
	for _, n := range r.names("text/") {
		if !strings.HasSuffix(n, " per instruction") {
			names = append(names, n)
		}
	}
	p.heading("Text", "MB a second of CPU, one goroutine, before compression.")
	r.bySize(p, "MB/s", "text/", names, false, best)
	if c := r.names("trace/"); len(c) > 0 {
		p.line("")
		p.line("The trace of run A of the kernel's graph, by our writer and by a plain C program with the same records (`bench/self/kernel/c`), in turns:")
		p.line("")
		r.bySize(p, "trace", "trace/", c, false, func(s *Sample) string {
			if s.Unit == "ratio" {
				return "**" + median(s) + "**"
			}
			return best(s)
		})
	}
}

func (r *Results) processTable(p *printer) {
	p.heading("Whole processes", "From the command line to its end, all cores. Millions of instructions a second of wall time depend on what else the machine does; CPU time does less.")
	r.usageTable(p, "run/", "`perfsim run`")
}

// usageTable shows what the processes of a prefix took, and how their CPU time
// grows.
func (r *Results) usageTable(p *printer, prefix, title string) {
	var runs []string
	for _, n := range r.names(prefix) {
		if name, ok := strings.CutSuffix(n, "/CPU"); ok {
			runs = append(runs, prefix+name)
		}
	}
	var rows [][]string
	for _, run := range runs {
		for _, n := range r.sizesOf(run + "/CPU") {
			cpu, wall := r.Find(run+"/CPU", n), r.Find(run+"/wall", n)
			if cpu == nil {
				continue
			}
			peak := r.Find(run+"/peak", n).Best()
			rows = append(rows, []string{strings.TrimPrefix(run, prefix), thousands(n), number(cpu.Best()), number(wall.Best()), number(float64(n) / wall.Best() / 1e6),
				humanize.IBytes(uint64(peak)), number(peak / float64(n)), thousands(int(r.Find(run+"/faults", n).Best()))})
		}
	}
	p.table([]string{title, "instructions", "CPU s", "wall s", "M instructions/s", "peak", "bytes an instruction", "page faults"}, rows)
	p.line("")
	for _, run := range runs {
		// Starting a process takes as long as some hundred thousand instructions.
		from := 10 * exponentFrom
		e, ok := r.Exponent(run+"/CPU per instruction", from)
		if !ok {
			from = exponentFrom
			e, ok = r.Exponent(run+"/CPU per instruction", from)
		}
		if ok {
			p.line("- %s: from %s instructions on, CPU time grows with the power %.2f of the size.", strings.TrimPrefix(run, prefix), thousands(from), e)
		}
	}
}

func (r *Results) peerTable(p *printer) {
	p.heading("Other simulators", "The same graph, each instruction keeping its lane until its end; whole processes, CPU seconds, taken in turns. perfsim places both runs from a snapshot, on one goroutine.")
	var rows [][]string
	for _, q := range r.Peers {
		if q.Absent != "" {
			rows = append(rows, []string{q.Name, "", "", "", "", q.Absent})
			continue
		}
		answer := "the same end"
		if !q.SameAnswer {
			answer = "another end"
		}
		rows = append(rows, []string{q.Name, thousands(q.N), number(r.Find("peer/"+q.Name+"/CPU", q.N).Median()),
			number(r.Find("peer/"+q.Name+": perfsim/CPU", q.N).Median()), fmt.Sprintf("%s (%s–%s)", number(q.Ratios[len(q.Ratios)/2]), number(q.Ratios[0]), number(q.Ratios[len(q.Ratios)-1])), answer})
	}
	p.table([]string{"simulator", "instructions", "its CPU s", "ours", "ratio (range)", "result"}, rows)
}

// Raw writes every figure as a line that benchstat reads.
func (r *Results) Raw(w io.Writer) error {
	p := &printer{w: w}
	p.line("goos: %s", strings.Split(r.Machine.System, "/")[0])
	p.line("cpu: %s", r.Machine.CPU)
	p.line("pkg: perfsim")
	for _, s := range r.Samples {
		name := strings.NewReplacer(" ", "_", ",", "", "(", "", ")", "").Replace(s.Name)
		for _, v := range s.Values {
			p.line("Benchmark%s/n=%d 1 %s %s", strings.ToUpper(name[:1])+name[1:], s.N, strconv.FormatFloat(v, 'g', 6, 64), s.Unit)
		}
	}
	return p.err
}
