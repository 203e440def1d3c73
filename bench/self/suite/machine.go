//go:build unix

package suite

import (
	"bufio"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Machine is where the figures were taken.
type Machine struct {
	CPU, System, Go, Version string
	Cores                    int
	Memory                   uint64 // bytes
	Date                     time.Time
}

func describe() Machine {
	m := Machine{CPU: field("/proc/cpuinfo", "model name"), Go: runtime.Version(), Cores: runtime.NumCPU(), System: runtime.GOOS + "/" + runtime.GOARCH, Date: time.Now().UTC()}
	if m.CPU == "" {
		m.CPU = "unknown processor"
	}
	if kb, _, _ := strings.Cut(field("/proc/meminfo", "MemTotal"), " "); kb != "" {
		n, _ := strconv.ParseUint(kb, 10, 64) // 0 where it is no number
		m.Memory = n << 10
	}
	if b, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.System += ", Linux " + strings.TrimSpace(string(b))
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				m.Version = s.Value[:min(12, len(s.Value))]
			}
		}
	}
	return m
}

// field returns the value of the first "KEY : VALUE" line of a file.
func field(path, key string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	for s.Scan() {
		if k, v, ok := strings.Cut(s.Text(), ":"); ok && strings.TrimSpace(k) == key {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// cpuTime is the CPU time of this process so far, in ns.
func cpuTime() int64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// timed runs f and returns its CPU time in ns.
func timed(f func() error) (float64, error) {
	runtime.GC() // not in the middle of it
	t := cpuTime()
	err := f()
	return float64(cpuTime() - t), err
}

// repeated runs f so many times and returns the CPU time of one in ns.
func repeated(times int, f func() error) (float64, error) {
	ns, err := timed(func() error {
		for range times {
			if err := f(); err != nil {
				return err
			}
		}
		return nil
	})
	return ns / float64(times), err
}

// memory measures what memory can do, for the ratios to it.
func (b *bench) memory() error {
	const bytes = 256 << 20
	src, dst := make([]uint64, bytes/8), make([]uint64, bytes/8)
	for i := range src {
		src[i] = uint64(i) // pages never written are all one page of zeroes, in the cache
	}
	fresh := func() error {
		m, err := syscall.Mmap(-1, 0, bytes, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
		if err != nil {
			return err
		}
		for i := 0; i < len(m); i += 4096 {
			m[i] = 1
		}
		return syscall.Munmap(m)
	}
	copy(dst, src)
	return b.rounds(func() error {
		var sum uint64
		ns, err := timed(func() error {
			for i := 0; i+8 <= len(src); i += 8 {
				sum += src[i] // one of each cache line
			}
			return nil
		})
		if err != nil || sum == 0 {
			return err
		}
		b.r.add("memory/read", bytes, "GB/s", bytes/ns)
		if ns, err = timed(func() error { copy(dst, src); return nil }); err != nil {
			return err
		}
		b.r.add("memory/copy", bytes, "GB/s", bytes/ns)
		if ns, err = timed(fresh); err != nil {
			return err
		}
		b.r.add("memory/first touch of a page", bytes, "ns", ns/(bytes/4096))
		return nil
	})
}
