package journal

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func read(t *testing.T, path string) (*Journal, []string) {
	t.Helper()
	var lines []string
	j, err := Open(path, func(line []byte) error { lines = append(lines, string(line)); return nil })
	if err != nil {
		t.Fatal(err)
	}
	return j, lines
}

// Whatever byte a kill cuts the file at, the whole lines before it are kept
// and lines appended later follow them.
func TestCutAnywhere(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "j")
	j, _ := read(t, path)
	want := []string{"one", "", "three, longer", strings.Repeat("x", 100)}
	for _, l := range want {
		j.Append([]byte(l))
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for cut := range len(whole) + 1 {
		if err := os.WriteFile(path, whole[:cut], 0o666); err != nil {
			t.Fatal(err)
		}
		n := strings.Count(string(whole[:cut]), "\n")
		j, got := read(t, path)
		if !slices.Equal(got, want[:n]) {
			t.Fatalf("cut at %d: %q, want %q", cut, got, want[:n])
		}
		j.Append([]byte("new"))
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		j, got = read(t, path)
		j.Close()
		if !slices.Equal(got, append(slices.Clone(want[:n]), "new")) {
			t.Fatalf("cut at %d, then appended: %q", cut, got)
		}
	}
}

// Two processes, or two parts of one, do not share a journal.
func TestLocked(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "j")
	j, _ := read(t, path)
	if _, err := Open(path, func([]byte) error { return nil }); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("error %v, want that it is in use", err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j, _ = read(t, path)
	j.Close()
}

func TestBadLine(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "j")
	if err := os.WriteFile(path, []byte("a\nb\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	bad := errors.New("no such line")
	if _, err := Open(path, func(line []byte) error {
		if string(line) == "b" {
			return bad
		}
		return nil
	}); !errors.Is(err, bad) || !strings.Contains(err.Error(), "j:2: ") {
		t.Errorf("error %v, want that of line 2", err)
	}
	if err := os.WriteFile(path, make([]byte, mostLine+4096), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path, func([]byte) error { return nil }); err != nil {
		t.Log(err) // zeros without a newline are a cut line or too long a one; neither may hang
	}
}
