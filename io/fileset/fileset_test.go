package fileset

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// contents returns names and texts of a folder, hidden ones included.
func contents(t *testing.T, dir string) string {
	t.Helper()
	es, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range es {
		b, _ := os.ReadFile(filepath.Join(dir, e.Name()))
		out = append(out, e.Name()+"="+string(b))
	}
	return strings.Join(out, " ")
}

func fill(t *testing.T, s *Set, text string, names ...string) {
	t.Helper()
	for _, n := range names {
		if err := os.WriteFile(filepath.Join(s.Staging(), n), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func root(t *testing.T, dir string) *os.Root {
	t.Helper()
	r, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func open(t *testing.T, dir string) *Set {
	t.Helper()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestCommitAndAbort(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	s := open(t, dir)
	fill(t, s, "old", "x", "y")
	s.Abort()
	if _, err := os.Stat(filepath.Dir(dir)); err == nil {
		t.Error("the folders made for the set stay after Abort")
	}
	for _, text := range []string{"old", "new"} {
		s = open(t, dir)
		fill(t, s, text, "x", "y")
		if err := s.Commit([]string{"x", "y"}); err != nil {
			t.Fatal(err)
		}
		s.Abort()
		if got, want := contents(t, dir), fmt.Sprintf("x=%s y=%s", text, text); got != want {
			t.Errorf("the folder holds %q, want %q", got, want)
		}
	}
}

// A folder in the place of one file is found before any file is moved.
func TestFolderInTheWay(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	fill(t, s, "old", "a", "c")
	if err := s.Commit([]string{"a", "c"}); err != nil {
		t.Fatal(err)
	}
	os.Mkdir(filepath.Join(dir, "b"), 0o755)
	s = open(t, dir)
	fill(t, s, "new", "a", "b", "c")
	err := s.Commit([]string{"a", "b", "c"})
	s.Abort()
	if err == nil || !strings.Contains(err.Error(), filepath.Join(dir, "b")+" is a directory") {
		t.Errorf("error %v", err)
	}
	if got := contents(t, dir); got != "a=old b= c=old" {
		t.Errorf("the folder holds %q", got)
	}
}

// A failure in the middle of the moves takes back what was moved, and removes
// names that were not there before.
func TestUndo(t *testing.T) {
	dir := t.TempDir()
	os.WriteFile(filepath.Join(dir, "a"), []byte("old"), 0o644)
	s := open(t, dir)
	fill(t, s, "new", "a", "b")
	names := []string{"a", "b", "c"}
	root, staging := root(t, dir), filepath.Base(s.staging)
	if err := note(root, staging, names); err != nil {
		t.Fatal(err)
	}
	if err := move(root, staging, names[:2], false); err != nil {
		t.Fatal(err)
	}
	if err := undo(root, staging, names[:2]); err != nil {
		t.Fatal(err)
	}
	s.Abort()
	if got := contents(t, dir); got != "a=old" {
		t.Errorf("the folder holds %q", got)
	}
}

// kill leaves a set as a killed process would: the lock is given back by the
// system, nothing else happens.
func kill(s *Set) { s.lock.Close() }

func TestKilled(t *testing.T) {
	for moved := -1; moved <= 2; moved++ {
		dir := t.TempDir()
		os.WriteFile(filepath.Join(dir, "a"), []byte("old"), 0o644)
		os.WriteFile(filepath.Join(dir, "b"), []byte("old"), 0o644)
		s := open(t, dir)
		fill(t, s, "new", "a", "b")
		names := []string{"a", "b"}
		want := "a=old b=old"
		if moved >= 0 {
			want = "a=new b=new"
			root, staging := root(t, dir), filepath.Base(s.staging)
			if err := note(root, staging, names); err != nil {
				t.Fatal(err)
			}
			if err := move(root, staging, names[:moved], false); err != nil {
				t.Fatal(err)
			}
		}
		kill(s)
		next := open(t, dir)
		next.Abort()
		if got := contents(t, dir); got != want {
			t.Errorf("killed after %d moves: the next run finds %q, want %q", moved, got, want)
		}
	}
}

// The hidden folder of a living process stays.
func TestTwoAtOnce(t *testing.T) {
	dir := t.TempDir()
	a := open(t, dir)
	fill(t, a, "a", "x")
	b := open(t, dir)
	fill(t, b, "b", "x")
	if err := a.Commit([]string{"x"}); err != nil {
		t.Fatal(err)
	}
	if err := b.Commit([]string{"x"}); err != nil {
		t.Fatal(err)
	}
	if got := contents(t, dir); got != "x=b" {
		t.Errorf("the folder holds %q", got)
	}
}

// A journal made with care cannot move files out of the folder.
func TestForeignJournal(t *testing.T) {
	dir := t.TempDir()
	staging := filepath.Join(dir, prefix+"1")
	os.Mkdir(staging, 0o755)
	os.WriteFile(filepath.Join(staging, journalName), []byte(`["../x"]`), 0o644)
	if s, err := Open(dir); err == nil {
		s.Abort()
		t.Error("a journal that names ../x was taken")
	}
}
