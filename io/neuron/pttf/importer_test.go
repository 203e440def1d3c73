package pttf

import (
	"archive/tar"
	"bytes"
	"context"
	"strings"
	"testing"

	"perfsim/io/format"
)

// TestImporterRefuses reads packages from which no single trace can be taken.
func TestImporterRefuses(t *testing.T) {
	const name = "perf_sim.m.sg0000.Block1.json"
	for _, c := range []struct {
		what string
		head []tar.Header
		want string
	}{
		{"a link in the place of the trace", []tar.Header{{Name: name, Typeflag: tar.TypeSymlink, Linkname: "x"}}, "no trace that is a regular file"},
		{"two traces", []tar.Header{{Name: name, Typeflag: tar.TypeReg}, {Name: "a/" + name, Typeflag: tar.TypeReg}}, `2 traces, such as "` + name},
	} {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for _, h := range c.head {
			if err := w.WriteHeader(&h); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		src, err := format.FromBytes("p.tar", b.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := read(context.Background(), src, format.Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.what, err, c.want)
		}
	}
}

// FuzzRead reads packages of any bytes.
func FuzzRead(f *testing.F) {
	f.Add([]byte("perf_sim.m.sg0000.Block1.json"))
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	w.WriteHeader(&tar.Header{Name: "perf_sim.m.sg0000.Block1.json", Size: 2, Typeflag: tar.TypeReg})
	w.Write([]byte("{}"))
	w.Close()
	f.Add(b.Bytes())
	f.Fuzz(func(_ *testing.T, data []byte) {
		if src, err := format.FromBytes("p.tar", data); err == nil {
			read(context.Background(), src, format.Options{Jobs: 1}) // must return
		}
	})
}
