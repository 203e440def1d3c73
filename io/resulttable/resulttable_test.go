package resulttable

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
)

type row struct {
	N     int64    `json:"n" parquet:"n"`
	Name  string   `json:"name" parquet:"name"`
	Share *float64 `json:"share" parquet:"share,optional"`
	Count *uint64  `json:"count" parquet:"count,optional"`
	Fits  *bool    `json:"fits" parquet:"fits,optional"`
}

func sample() []row {
	share, count, fits := 0.25, uint64(1)<<63, true
	return []row{{1, "a", &share, &count, &fits}, {2, `quote " and, comma` + "\nline <&>", nil, nil, nil}}
}

func TestText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		f    Format
		want string
	}{
		{CSV, "n,name,share,count,fits\n1,a,0.25,9223372036854775808,true\n2,\"quote \"\" and, comma\nline <&>\",,,\n"},
		{JSONLines, `{"n":1,"name":"a","share":0.25,"count":9223372036854775808,"fits":true}` + "\n" +
			`{"n":2,"name":"quote \" and, comma\nline <&>","share":null,"count":null,"fits":null}` + "\n"},
	} {
		var b strings.Builder
		if err := Write(&b, c.f, slices.Values(sample())); err != nil || b.String() != c.want {
			t.Errorf("%s: %v\n%s\nwant\n%s", c.f, err, b.String(), c.want)
		}
	}
}

func TestParquet(t *testing.T) {
	t.Parallel()
	var a, b bytes.Buffer
	many := func(yield func(row) bool) {
		for range 1500 {
			for _, r := range sample() {
				if !yield(r) {
					return
				}
			}
		}
	}
	for _, w := range []*bytes.Buffer{&a, &b} {
		if err := Write(w, Parquet, many); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(a.Bytes(), b.Bytes()) {
		t.Error("the same rows give other bytes")
	}
	got, err := parquet.Read[row](bytes.NewReader(a.Bytes()), int64(a.Len()))
	if err != nil || len(got) != 3000 {
		t.Fatal(len(got), err)
	}
	if r := got[2998]; r.N != 1 || *r.Share != 0.25 || *r.Count != 1<<63 || !*r.Fits {
		t.Errorf("row %+v", r)
	}
	if r := got[2999]; r.Name != sample()[1].Name || r.Share != nil || r.Count != nil || r.Fits != nil {
		t.Errorf("row %+v", r)
	}
}

func TestFormatOf(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]Format{"a.csv": CSV, "a.csv.gz": CSV, "x/a.jsonl": JSONLines, "a.parquet": Parquet, "a.parquet.gz": "", "a.json": "", "a": ""} {
		if f, err := FormatOf(path); f != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v; want %q", path, f, err, want)
		}
	}
}
