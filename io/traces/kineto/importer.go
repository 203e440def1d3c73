package kineto

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"perfsim/components"
	"perfsim/io/format"
	"perfsim/io/internal/jsonarray"
	"perfsim/io/internal/jsonscan"
	"perfsim/io/internal/timeline"
)

// Importer reads Chrome and Kineto traces.
var Importer = format.Importer{
	Name:   "kineto",
	Sniff:  sniff,
	Module: read,
}

var bom = []byte("\xef\xbb\xbf")

// topKeys are keys of the object form; traceEvents itself may come after more
// than a sniffer sees.
var topKeys = [][]byte{[]byte(`"traceEvents"`), []byte(`"deviceProperties"`), []byte(`"schemaVersion"`), []byte(`"baseTimeNanoseconds"`),
	[]byte(`"displayTimeUnit"`), []byte(`"distributedInfo"`)}

// sniff looks for an array of events, or an object with one of the keys that
// such traces have.
func sniff(head []byte) bool {
	head = bytes.TrimLeft(bytes.TrimPrefix(head, bom), " \t\r\n")
	if len(head) == 0 {
		return false
	}
	if head[0] == '[' {
		rest := bytes.TrimLeft(head[1:], " \t\r\n")
		return len(rest) > 0 && rest[0] == '{' && bytes.Contains(rest, []byte(`"ph"`))
	}
	if head[0] != '{' {
		return false
	}
	for _, k := range topKeys {
		if bytes.Contains(head, k) {
			return true
		}
	}
	return false
}

// noBOM reads a byte order mark as white space, so that offsets stay.
type noBOM struct {
	r     io.Reader
	begun bool
}

func (n *noBOM) Read(p []byte) (int, error) {
	if n.begun || len(p) < len(bom) {
		return n.r.Read(p)
	}
	n.begun = true
	got, err := io.ReadAtLeast(n.r, p, len(bom))
	if bytes.HasPrefix(p[:got], bom) {
		copy(p, "   ")
	}
	if errors.Is(err, io.ErrUnexpectedEOF) && got > 0 {
		err = nil // a short input; the next call reports its end
	}
	return got, err
}

// longestCut is how much may follow the last whole event of a trace that was
// cut off. More is no cut event but text that was taken for one.
const longestCut = 1 << 16

func read(ctx context.Context, src *format.Source, _ format.Options) (*components.Module, error) {
	name := path.Base(src.Name)
	for _, suffix := range []string{".gz", ".zst", ".json", ".pt.trace"} {
		name = strings.TrimSuffix(name, suffix)
	}
	t := newTrace(timeline.New(name, "kineto"))
	w := jsonarray.New(&noBOM{r: src})
	n, last := 0, int64(0) // last: where the last event ends
	err := w.Each("traceEvents", func(v jsonscan.Value, off int64) error {
		last = w.Offset()
		if n++; n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if err := t.element(v); err != nil {
			return fmt.Errorf("byte %d: %w", off, err)
		}
		return nil
	}, t.header)
	switch cut := errors.Is(err, io.ErrUnexpectedEOF) && n > 0; {
	case cut && w.Offset()-last > longestCut:
		err = fmt.Errorf("byte %d: what begins here does not end (a quote in a name that is not escaped?): %w", last, err)
	case cut:
		// Profilers that are killed while they export leave such files behind.
		t.b.M.Note("truncated", fmt.Sprintf("the input ends at byte %d, inside the trace: the events before that are used", w.Offset()), 1)
		err = nil
	}
	if err == nil {
		var m *components.Module
		if m, err = t.module(); err == nil {
			return m, nil
		}
	}
	if strings.HasPrefix(err.Error(), src.Name) {
		return nil, err
	}
	return nil, fmt.Errorf("%s: %w", src.Name, err)
}
