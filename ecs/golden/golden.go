// Package golden compares output with files that tests keep. With
// `go test ./... -update` it writes them anew.
package golden

import (
	"flag"
	"os"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Check fails the test where the file at path does not hold got.
func Check(t testing.TB, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) == string(want) {
		return
	}
	if utf8.Valid(got) {
		t.Errorf("%s differs (- want, + got; -update writes it anew):\n%s", path, cmp.Diff(string(want), string(got)))
		return
	}
	t.Errorf("%s differs: %d bytes, want %d", path, len(got), len(want))
}
