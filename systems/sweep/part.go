package sweep

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"perfsim/io/formats"
	"perfsim/io/resulttable"
)

// partHead is the first line of a part; the rows of its cases follow, one a
// line.
type partHead struct {
	Version int    `json:"perfsim_sweep_part"` // version of the file's format
	Plan    string `json:"plan"`               // its digest
	Engine  string `json:"engine"`             // version of what predicts
	Cases   int    `json:"cases"`              // of the whole plan
	From    int    `json:"from"`               // the cases of the part
	To      int    `json:"to"`
}

// mostRow bounds a line of a part, in bytes.
const mostRow = 16 << 20

// WritePart writes the results of the cases from to to, for Merge.
func (p *Plan) WritePart(r *Record, from, to int, path string) error {
	return formats.Save(path, nil, func(w io.Writer) error {
		out := bufio.NewWriter(w)
		e := json.NewEncoder(out)
		e.SetEscapeHTML(false)
		if err := e.Encode(partHead{1, p.Digest(), p.Engine, p.Len(), from, to}); err != nil {
			return err
		}
		var bad error
		for row := range p.rows(r, from, to, &bad) {
			if err := e.Encode(row); err != nil {
				return err
			}
		}
		return errors.Join(bad, out.Flush())
	})
}

// Merge makes the table at path of all parts of one sweep, and returns how many
// rows it has.
func Merge(parts []string, path string) (rows int, err error) {
	type part struct {
		partHead
		path string
	}
	var list []part
	for _, name := range parts {
		h, err := readHead(name)
		if err != nil {
			return 0, err
		}
		list = append(list, part{h, name})
	}
	slices.SortStableFunc(list, func(a, b part) int { return a.From - b.From })
	at := 0
	for _, x := range list {
		switch first := list[0]; {
		case x.Plan != first.Plan:
			return 0, fmt.Errorf("%s and %s are parts of different sweeps (inputs, machines, options, changes or the version of perfsim differ)", first.path, x.path)
		case x.From > at:
			return 0, fmt.Errorf("cases %d to %d are in none of the parts", at, x.From-1)
		case x.From < at:
			return 0, fmt.Errorf("%s has cases from %d on, which another part has too", x.path, x.From)
		}
		at = x.To
	}
	if len(list) == 0 || at < list[0].Cases {
		return 0, fmt.Errorf("cases %d to %d are in none of the parts", at, list[0].Cases-1)
	}
	_, err = save(path, func(f resulttable.Format, w io.Writer) error {
		rows = 0
		var bad error
		err := resulttable.Write(w, f, func(yield func(caseRow) bool) {
			for _, x := range list {
				ok, err := readRows(x.path, x.partHead, func(r caseRow) bool { rows++; return yield(r) })
				if bad = err; err != nil || !ok {
					return
				}
			}
		})
		return errors.Join(bad, err)
	})
	return rows, err
}

func readHead(path string) (h partHead, err error) {
	f, err := os.Open(path)
	if err != nil {
		return h, err
	}
	defer f.Close()
	line, err := bufio.NewReader(io.LimitReader(f, 1<<12)).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &h)
	}
	if err != nil || h.Version != 1 || h.From < 0 || h.To < h.From || h.Cases < h.To {
		return h, fmt.Errorf("%s:1: not the part of a sweep, as 'perfsim sweep --shard' writes it", path)
	}
	return h, nil
}

// readRows yields the rows of a part, which has to have all of its cases in
// their order; ok is false where yield ended it.
func readRows(path string, h partHead, yield func(caseRow) bool) (ok bool, err error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	in := bufio.NewScanner(f)
	in.Buffer(nil, mostRow)
	in.Scan() // the head
	next := h.From
	for line := 2; in.Scan(); line++ {
		var row caseRow
		d := json.NewDecoder(bytes.NewReader(in.Bytes()))
		d.DisallowUnknownFields()
		if err := d.Decode(&row); err != nil {
			return false, fmt.Errorf("%s:%d: %w", path, line, err)
		}
		if row.Case != int64(next) || next >= h.To {
			return false, fmt.Errorf("%s:%d: case %d where case %d of %d to %d is due", path, line, row.Case, next, h.From, h.To)
		}
		next++
		if !yield(row) {
			return false, nil
		}
	}
	if err := in.Err(); err != nil {
		return false, fmt.Errorf("%s: %w", path, err)
	}
	if next < h.To {
		return false, fmt.Errorf("%s ends before case %d of %d to %d", path, next, h.From, h.To)
	}
	return true, nil
}
