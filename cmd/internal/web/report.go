package web

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// Static is what the page as one file needs beyond the dataset, because
// nobody answers its questions: names and dependencies by event id.
type Static struct {
	Names   []string `json:"names"` // Names[0] is "": the implicit name I-<id>
	Name    []uint32 `json:"name"`
	Sources []string `json:"sources"` // Sources[0] is ""
	Source  []uint32 `json:"source"`
	// Off holds how many dependencies each event has; Back and Kind, in the
	// same order, how many ids before it each producer is and of what kind.
	Off       []uint32 `json:"off"`
	Back      []uint32 `json:"back"`
	Kind      []uint32 `json:"kind"`
	EdgeKinds []string `json:"edgeKinds"`
}

// MaxReportEvents bounds the page as one file: a browser holds all events of
// it.
const MaxReportEvents = 1_000_000

type staticData struct {
	Meta     meta            `json:"meta"`
	Sections []staticSection `json:"sections"`
	Static
}

type staticSection struct {
	Rows []staticRow `json:"rows"`
}

// staticRow has starts and ids as differences, which compress well.
type staticRow struct {
	Start    []uint64 `json:"s"`
	Dur      []uint64 `json:"d"`
	ID       []int64  `json:"i"`
	Kind     []int    `json:"k"`
	Cause    []int    `json:"c,omitempty"`
	Critical []int    `json:"x,omitempty"`
}

// Report writes the page as one file that needs no server and asks for
// nothing.
func Report(w io.Writer, d *Dataset, s Static) error {
	if n := d.events(); n > MaxReportEvents {
		return fmt.Errorf("a page of %d events is too large for one file (at most %d); view without -o has no such limit", n, MaxReportEvents)
	}
	d.prepare()
	data := staticData{Meta: newMeta(d), Static: s}
	for _, sec := range d.Sections {
		var out staticSection
		for _, r := range sec.Rows {
			row := staticRow{Start: make([]uint64, len(r.Start)), Dur: make([]uint64, len(r.Start)), ID: make([]int64, len(r.Start)), Kind: make([]int, len(r.Start))}
			var t uint64
			var id int64
			for i := range r.Start {
				row.Start[i] = r.Start[i] - t
				row.Dur[i] = r.End[i] - r.Start[i]
				row.ID[i] = int64(r.ID[i]) - id
				row.Kind[i] = int(r.Kind[i])
				t, id = r.Start[i], int64(r.ID[i])
				if r.Cause != nil {
					row.Cause = append(row.Cause, int(r.Cause[i]))
				}
				if r.Critical != nil && r.Critical[i] {
					row.Critical = append(row.Critical, i)
				}
			}
			out.Rows = append(out.Rows, row)
		}
		data.Sections = append(data.Sections, out)
	}
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(z).Encode(data); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	page, err := onePage(base64.StdEncoding.EncodeToString(packed.Bytes()))
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, page)
	return err
}

// onePage puts style, script and data into the page.
func onePage(data string) (string, error) {
	var part [3]string
	for i, name := range []string{"index.html", "style.css", "app.js"} {
		b, err := assets.ReadFile("assets/" + name)
		if err != nil {
			return "", err
		}
		part[i] = string(b)
	}
	page := part[0]
	for _, r := range [][2]string{
		{`<link rel="stylesheet" href="style.css">`, "<style>\n" + part[1] + "</style>"},
		{`<script src="app.js"></script>`, `<script type="text/plain" id="data">` + data + "</script>\n<script>\n" + part[2] + "</script>"},
	} {
		if !strings.Contains(page, r[0]) {
			return "", fmt.Errorf("the page has no %s", r[0])
		}
		page = strings.Replace(page, r[0], r[1], 1)
	}
	return page, nil
}
