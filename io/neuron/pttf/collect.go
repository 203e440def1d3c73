package pttf

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sync"
)

// tracePattern finds trace files. It is searched for anywhere in the name, not
// matched against all of it, so perf_sim.a.json.bak is found and
// perf_sim_at_end_trace.a.json is not. The documented pattern has ".*", where
// "." means any character but a line end.
var tracePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`perf_sim\.[^\n\r]*\.json`) })

// isTraceName reports whether the package takes a file of this base name.
func isTraceName(base string) bool { return tracePattern().MatchString(base) }

// Collect returns the paths (dir joined with the name) of the trace files in
// dir, in directory order: regular files whose name the pattern is found in.
// It does not descend, and a symbolic link is not a regular file. Finding none
// is no error. log, if not nil, receives the documented lines.
func Collect(dir string, log func(string)) ([]string, error) {
	say := logger(log)
	d, err := os.Open(dir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			say("Directory does not exist: " + dir)
		}
		return nil, fmt.Errorf("search for trace files: %w", err)
	}
	defer d.Close()
	var files []string
	for {
		// In pieces: a directory of a million files is no reason to hold
		// them all. ReadDir of a file gives directory order, unsorted.
		entries, err := d.ReadDir(1024)
		for _, e := range entries {
			if !e.Type().IsRegular() || !isTraceName(e.Name()) {
				continue
			}
			path := filepath.Join(dir, e.Name())
			files = append(files, path)
			say("Found trace file: " + path)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("search for trace files in %s: %w", dir, err)
		}
	}
	if len(files) > 0 {
		say(fmt.Sprintf("Found %d perf_sim trace file(s)", len(files)))
	}
	return files, nil
}

func logger(log func(string)) func(string) {
	if log == nil {
		return func(string) {}
	}
	return log
}
