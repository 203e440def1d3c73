//go:build unix

package suite

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"
)

// logRows is the size of the generated device log.
const logRows = 2_000_000

// csvScript is the yardstick of device logs, below the root of the repository.
const csvScript = "bench/ttprof_csv.py"

// logs measures the analysis of a device log and of a plain script that reads
// it with Python's csv module.
func (b *bench) logs() error {
	path := filepath.Join(b.opt.Dir, "device.csv")
	if _, _, err := b.perfsim("profile", "gen", "--rows", strconv.Itoa(logRows), path); err != nil {
		return err
	}
	defer os.Remove(path)
	st, err := os.Stat(path)
	if err != nil {
		return err
	}
	python, err := exec.LookPath("python3")
	script, serr := Upward(csvScript)
	if err != nil || serr != nil {
		b.note("device logs beside Python's csv: python3 or %s is not here", csvScript)
		python = ""
	}
	return b.rounds(func() error {
		ours, _, err := b.perfsim("profile", "-q", path)
		if err != nil {
			return err
		}
		b.addUsage("log/perfsim profile", logRows, ours)
		b.r.add("log/MB per CPU second", logRows, "MB/s", float64(st.Size())/1e6/ours.cpu)
		if python == "" {
			return nil
		}
		theirs, _, err := b.process(nil, python, script, path)
		if err != nil {
			return err
		}
		b.addUsage("log/python csv", logRows, theirs)
		b.r.add("log/python over perfsim, CPU", logRows, "ratio", theirs.cpu/ours.cpu)
		return nil
	})
}

// realFiles are large modules of real users, below the folder of data; they are
// not part of the repository.
var realFiles = []struct{ name, path string }{
	{"Mixtral-8x7B train step, HLO", "hlo_text/openxla__xla__hlo_mixtral_8x7b_bf16_2x8.hlo.gz"},
	{"Gemma-3 4B train step, HLO", "hlo_text/ROCm__xla__gemma3_4b__module_0096.jit_train_step.before_optimizations.txt.gz"},
}

// files measures reading, lowering and simulating real modules.
func (b *bench) files() error {
	for _, f := range realFiles {
		path := filepath.Join(b.opt.Data, f.path)
		if _, err := os.Stat(path); err != nil {
			b.note("%s: %s is not in the folder of data (--data)", f.name, f.path)
			continue
		}
		u, _, err := b.perfsim("run", "-q", "--machine", "trn2", path)
		if err != nil {
			return err
		}
		b.addUsage("file/"+f.name, 1, u)
		out := filepath.Join(b.opt.Dir, "files")
		u, _, err = b.perfsim("run", "-q", "--machine", "trn2", "-o", out, path)
		os.RemoveAll(out)
		if err != nil {
			return err
		}
		b.addUsage("file/"+f.name+", with traces and package", 1, u)
	}
	return nil
}

// note records what could not be measured.
func (b *bench) note(format string, args ...any) {
	b.r.Notes = append(b.r.Notes, fmt.Sprintf(format, args...))
}

// fileTable shows what logs and files measured.
func (r *Results) fileTable(p *printer) {
	var rows [][]string
	for _, prefix := range []string{"file/", "log/"} {
		for _, n := range r.names(prefix) {
			name, ok := strings.CutSuffix(n, "/CPU")
			if !ok {
				continue
			}
			for _, size := range r.sizesOf(prefix + n) {
				peak := r.Find(prefix+name+"/peak", size)
				rows = append(rows, []string{name, number(r.Find(prefix+n, size).Best()), number(r.Find(prefix+name+"/wall", size).Best()), humanize.IBytes(uint64(peak.Best()))})
			}
		}
	}
	if len(rows) == 0 {
		return
	}
	p.heading("Real modules and device logs", "Whole processes. The modules are read, lowered for trn2, and simulated before and after allocation; the generated device log has "+thousands(logRows)+" rows.")
	p.table([]string{"what", "CPU s", "wall s", "peak"}, rows)
	if s := r.Find("log/python over perfsim, CPU", logRows); s != nil {
		p.line("")
		p.line("Device logs: %s MB a CPU second; a plain script with Python's csv module takes **%s** times the CPU of `perfsim profile` on the same log.",
			number(r.Find("log/MB per CPU second", logRows).Median()), number(s.Median()))
	}
}
