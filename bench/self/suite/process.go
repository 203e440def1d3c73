//go:build unix

package suite

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// usage is the time and memory of one process.
type usage struct {
	cpu, wall float64 // s
	peak      float64 // bytes
	faults    float64 // pages
}

// process runs a command to its end.
func (b *bench) process(env []string, args ...string) (usage, []byte, error) {
	cmd := exec.CommandContext(b.ctx, args[0], args[1:]...)
	peak := filepath.Join(b.opt.Dir, "peak")
	os.Remove(peak) // of the process before
	cmd.Env = append(append(os.Environ(), env...), peakFile+"="+peak)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	t := time.Now()
	if err := cmd.Run(); err != nil {
		return usage{}, nil, fmt.Errorf("%s: %w: %s", args[0], err, bytes.TrimSpace(errs.Bytes()))
	}
	u := usage{wall: time.Since(t).Seconds()}
	if r, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		u.cpu = float64(r.Utime.Nano()+r.Stime.Nano()) / 1e9
		u.peak, u.faults = float64(r.Maxrss)*1024, float64(r.Minflt+r.Majflt)
	}
	// The system counts what the parent held when it started the child as the
	// child's peak; perfsim reports its own.
	if text, err := os.ReadFile(peak); err == nil {
		if u.peak, err = strconv.ParseFloat(string(text), 64); err != nil {
			return usage{}, nil, err
		}
	}
	return u, out.Bytes(), nil
}

// peakFile is the variable of the environment that names the file where a
// perfsim process under measurement writes its peak memory in bytes.
const peakFile = "PERFBENCH_PEAK"

// WritePeak does that, where it is asked for.
func WritePeak() error {
	path := os.Getenv(peakFile)
	if path == "" {
		return nil
	}
	kb, _, _ := strings.Cut(field("/proc/self/status", "VmHWM"), " ")
	n, err := strconv.ParseUint(kb, 10, 64)
	if err != nil {
		return nil // a system that does not say
	}
	return os.WriteFile(path, strconv.AppendUint(nil, n<<10, 10), 0o600)
}

// perfsim runs perfsim.
func (b *bench) perfsim(args ...string) (usage, []byte, error) {
	return b.process(b.opt.Env, append(b.opt.Command[:len(b.opt.Command):len(b.opt.Command)], args...)...)
}

func (b *bench) addUsage(name string, n int, u usage) {
	b.r.add(name+"/wall", n, "s", u.wall)
	b.r.add(name+"/CPU", n, "s", u.cpu)
	b.r.add(name+"/CPU per instruction", n, "ns/instr", u.cpu*1e9/float64(n))
	b.r.add(name+"/peak", n, "bytes", u.peak)
	b.r.add(name+"/faults", n, "pages", u.faults)
}

// explainMost bounds what explain is measured on: it predicts again a dozen
// times.
const explainMost = 10_000_000

// processes takes whole runs that write nothing, as a person starts them.
func (b *bench) processes() error {
	return b.sizes("processes", 1<<30, func(n int) error {
		path, err := b.snapshot(n)
		if err != nil {
			return err
		}
		return b.rounds(func() error {
			err := b.runs(n, []runCase{
				{"run/metrics only", []string{"-q", path}},
				{"run/metrics only, one goroutine", []string{"-q", "-j", "1", path}},
			})
			if err != nil || n > explainMost {
				return err
			}
			u, _, err := b.perfsim("explain", "-q", path)
			if err != nil {
				return err
			}
			b.addUsage("run/explain, its report on the screen", n, u)
			return nil
		})
	})
}

// outputs takes whole runs that write traces or read text.
func (b *bench) outputs() error {
	return b.sizes("traces and text", traceMost, func(n int) error {
		path, err := b.snapshot(n)
		if err != nil {
			return err
		}
		text := filepath.Join(b.opt.Dir, strconv.Itoa(n)+".bir.json")
		if _, _, err := b.perfsim("convert", "-q", path, text); err != nil {
			return err
		}
		defer os.Remove(text)
		out := filepath.Join(b.opt.Dir, "out")
		return b.rounds(func() error {
			defer os.RemoveAll(out)
			return b.runs(n, []runCase{
				{"run/traces into file.perf-sim", []string{"-q", "--package-only", "-o", out, path}},
				{"run/all trace files and the package", []string{"-q", "-o", out + "/all", path}},
				{"run/metrics only, from BIR JSON", []string{"-q", text}},
			})
		})
	})
}

// runCase is one command line of `perfsim run`.
type runCase struct {
	name string
	args []string
}

func (b *bench) runs(n int, cases []runCase) error {
	for _, c := range cases {
		u, _, err := b.perfsim(append([]string{"run"}, c.args...)...)
		if err != nil {
			return err
		}
		b.addUsage(c.name, n, u)
	}
	return nil
}

// latency reads the latency that `perfsim run --json` printed.
func latency(out []byte) (uint64, error) {
	var v struct {
		Latency uint64 `json:"latency_ns"`
	}
	if err := json.Unmarshal(out, &v); err != nil {
		return 0, fmt.Errorf("reading the result of perfsim: %w", err)
	}
	return v.Latency, nil
}
