package sweep

import (
	"bytes"
	"context"
	"crypto/sha256"
	"hash"
	"io"
	"iter"
	"os"
	"strconv"
	"strings"

	"perfsim/io/formats"
	"perfsim/io/resulttable"
	"perfsim/io/workq"
)

// Progress is how far a sweep is.
type Progress struct {
	Done, Failed, Total int // cases with a result, those of them with an error, all
}

// Counts says what a sweep did.
type Counts struct {
	Cases int `json:"cases"` // of the plan, or of the part of it
	// Before had a result when the sweep began, Predicted got theirs in it,
	// Failed are all whose result is an error.
	Before    int `json:"before"`
	Predicted int `json:"predicted"`
	Failed    int `json:"failed"`
}

// Range says which cases of a plan to work on.
type Range struct {
	From, To int
	// Retry has those predicted again whose result is an error.
	Retry bool
	// Files, where not "", is the folder in which cases have files: a case
	// without them counts as one without a result.
	Files string
}

// tasks lists the cases of a range that have no result, each ID once.
func (p *Plan) tasks(r *Record, w Range) []workq.Task {
	var out []workq.Task
	for n := w.From; n < w.To; n++ {
		c := p.Case(n)
		_, done := r.have[c.ID]
		if r.fail[c.ID] {
			done = !w.Retry
		} else if done && w.Files != "" {
			done = hasFiles(w.Files, c)
		}
		if done {
			continue
		}
		out = append(out, workq.Task{ID: c.ID, Group: p.group(&c), Body: strconv.AppendInt(nil, int64(n), 10)})
	}
	return workq.Once(out)
}

// Run has a queue work on the cases of a range that have no result, and puts
// the results into the record. told, where not nil, is called for each batch.
func (p *Plan) Run(ctx context.Context, q workq.Queue, r *Record, w Range, told func(Progress)) (Counts, error) {
	from, to := w.From, w.To
	tasks := p.tasks(r, w)
	counts := Counts{Cases: to - from}
	ids := map[string]int{} // cases by the ID that is worked on
	for _, t := range tasks {
		ids[t.ID] = 0
		delete(r.fail, t.ID)
	}
	for n := from; n < to; n++ {
		id := p.Case(n).ID
		if _, ok := ids[id]; ok {
			ids[id]++
		} else {
			counts.Before++
		}
	}
	at := Progress{Done: counts.Before, Failed: p.failed(r, from, to), Total: counts.Cases}
	tell := func() {
		if told != nil {
			told(at)
		}
	}
	tell()
	var err error
	if len(tasks) > 0 {
		err = q.Run(ctx, tasks, func(list []workq.Result) error {
			fresh, cases := list[:0:0], []int{}
			for _, x := range list {
				if n, ok := ids[x.ID]; ok { // what came twice, or of another sweep, is there already
					delete(ids, x.ID)
					fresh = append(fresh, x)
					cases = append(cases, n)
				}
			}
			if err := r.Take(fresh); err != nil {
				return err
			}
			for k, x := range fresh {
				at.Done += cases[k]
				counts.Predicted += cases[k]
				if r.fail[x.ID] {
					at.Failed += cases[k]
				}
			}
			tell()
			return nil
		})
	}
	counts.Failed = p.failed(r, from, to)
	return counts, err
}

// failed counts the cases whose result is an error.
func (p *Plan) failed(r *Record, from, to int) int {
	n := 0
	if len(r.fail) == 0 {
		return 0
	}
	for k := from; k < to; k++ {
		if r.fail[p.Case(k).ID] {
			n++
		}
	}
	return n
}

// rows yields the rows of the cases from to to that have a result, in the order
// of the cases; *err is the error that ended it early.
func (p *Plan) rows(r *Record, from, to int, err *error) iter.Seq[caseRow] {
	return func(yield func(caseRow) bool) {
		for n := from; n < to; n++ {
			row, ok, e := r.row(p, p.Case(n))
			if e != nil {
				*err = e
				return
			}
			if ok && !yield(row) {
				return
			}
		}
	}
}

// WriteTable writes the table of all cases to path, in the format of its
// ending. A file that holds it already is left alone; written says which.
func (p *Plan) WriteTable(r *Record, path string) (written bool, err error) {
	return save(path, func(f resulttable.Format, w io.Writer) error {
		var bad error
		if err := resulttable.Write(w, f, p.rows(r, 0, p.Len(), &bad)); err != nil {
			return err
		}
		return bad
	})
}

// save writes a table unless the file at path has these bytes.
func save(path string, write func(resulttable.Format, io.Writer) error) (written bool, err error) {
	f, err := resulttable.FormatOf(path)
	if err != nil {
		return false, err
	}
	if have := sumOf(path); have != nil && !strings.HasSuffix(path, ".gz") {
		h := sha256.New()
		if err := write(f, h); err != nil {
			return false, err
		}
		if bytes.Equal(h.Sum(nil), have) {
			return false, nil
		}
	}
	return true, formats.Save(path, nil, func(w io.Writer) error { return write(f, w) })
}

// sumOf returns the SHA-256 of a file, nil where it cannot be read.
func sumOf(path string) []byte {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	var h hash.Hash = sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return nil
	}
	return h.Sum(nil)
}
