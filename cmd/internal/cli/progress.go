package cli

import (
	"io"
	"os"
	"sync/atomic"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"

	"perfsim/io/format"
)

// progress shows one bar at a time on a terminal, and nothing elsewhere.
type progress struct {
	p    *mpb.Progress
	bar  *mpb.Bar
	seen atomic.Int64
	// watch, where not nil, is called with the name of every piece of work.
	watch func(name string)
}

// newProgress returns a display on stderr; quiet turns it off.
func newProgress(stderr io.Writer, quiet bool) *progress {
	f, ok := format.Raw(stderr).(*os.File)
	if quiet || !ok || !term.IsTerminal(int(f.Fd())) {
		return &progress{}
	}
	return &progress{p: mpb.New(mpb.WithOutput(f), mpb.WithWidth(48))}
}

// start begins a bar for work of total units, replacing the one before; bytes
// says that the units are bytes. A total of 0 or less is not known.
func (p *progress) start(name string, total int64, bytes bool) {
	if p.watch != nil {
		p.watch(name)
	}
	if p.p == nil {
		return
	}
	p.finish()
	counters := decor.CountersNoUnit(" %d / %d")
	if bytes {
		counters = decor.CountersKibiByte(" % .1f / % .1f")
	}
	p.seen.Store(0)
	p.bar = p.p.AddBar(max(total, 0), mpb.BarRemoveOnComplete(), mpb.PrependDecorators(decor.Name(name, decor.WCSyncSpaceR)),
		mpb.AppendDecorators(counters))
}

// stage is start, as the systems call it.
func (p *progress) stage(name string, total int64, bytes bool) func(done int64) {
	p.start(name, total, bytes)
	return p.set
}

// set shows how much is done; it never goes backwards.
func (p *progress) set(done int64) {
	if p.bar == nil {
		return
	}
	for {
		old := p.seen.Load()
		if done <= old {
			return
		}
		if p.seen.CompareAndSwap(old, done) {
			p.bar.SetCurrent(done)
			return
		}
	}
}

// finish removes the bar.
func (p *progress) finish() {
	if p.bar != nil {
		p.bar.Abort(true)
		p.bar.Wait()
		p.bar = nil
	}
}

// close removes what is shown and waits for the display to end.
func (p *progress) close() {
	if p.p == nil {
		return
	}
	p.finish()
	p.p.Wait()
	p.p = nil
}
