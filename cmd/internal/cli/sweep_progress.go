package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"golang.org/x/term"

	"perfsim/io/format"
	"perfsim/systems/sweep"
)

// sweepProgress prints how far a sweep is: one line that is rewritten on a
// terminal, a line every ten seconds elsewhere.
type sweepProgress struct {
	out   io.Writer // nil for none
	tty   bool
	began time.Time
	ended time.Time
	first int // cases that had results at the beginning; -1 before
	shown time.Time
	width int // of what the terminal shows
}

func newSweepProgress(stderr io.Writer, quiet bool) *sweepProgress {
	p := &sweepProgress{out: stderr, began: time.Now(), first: -1}
	if f, ok := format.Raw(stderr).(*os.File); ok {
		p.tty = term.IsTerminal(int(f.Fd()))
	}
	if quiet {
		p.out = nil
	}
	p.shown = p.began
	return p
}

// told takes the state of the sweep.
func (p *sweepProgress) told(at sweep.Progress) {
	now := time.Now()
	if p.first < 0 {
		p.first, p.began, p.shown = at.Done, now, now
		return
	}
	every := 10 * time.Second
	if p.tty {
		every = 500 * time.Millisecond
	}
	if p.out == nil || now.Sub(p.shown) < every {
		return
	}
	p.shown = now
	text := progressText(at, p.first, now.Sub(p.began))
	if !p.tty {
		fmt.Fprintln(p.out, text)
		return
	}
	sayf(p.out, "\r%s%s", text, strings.Repeat(" ", max(0, p.width-len(text))))
	p.width = len(text)
}

// progressText says how far a sweep is after a time in which it went on from
// first cases.
func progressText(at sweep.Progress, first int, took time.Duration) string {
	rate := float64(at.Done-first) / took.Seconds()
	text := fmt.Sprintf("%s of %s", humanize.Comma(int64(at.Done)), countOf(at.Total, "case"))
	if at.Failed > 0 {
		text += fmt.Sprintf(", %s failed", humanize.Comma(int64(at.Failed)))
	}
	if rate > 0 {
		left := time.Duration(float64(at.Total-at.Done) / rate * float64(time.Second))
		text += fmt.Sprintf(", %s cases/s, %s left", rateText(rate), left.Round(time.Second))
	}
	return text
}

// rateText writes a rate with three digits that matter.
func rateText(rate float64) string {
	if rate >= 100 {
		return humanize.Comma(int64(rate + 0.5))
	}
	return fmt.Sprintf("%.3g", rate)
}

// close ends the line and the time.
func (p *sweepProgress) close() {
	p.ended = time.Now()
	if p.out != nil && p.tty && p.width > 0 {
		sayf(p.out, "\r%s\r", strings.Repeat(" ", p.width))
	}
}

func (p *sweepProgress) seconds() float64 { return p.ended.Sub(p.began).Seconds() }

// rate is in cases a second.
func (p *sweepProgress) rate(n int) float64 { return float64(n) / max(p.seconds(), 1e-9) }
