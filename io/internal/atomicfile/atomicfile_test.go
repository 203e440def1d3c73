package atomicfile

import (
	"os"
	"path/filepath"
	"testing"
)

func names(t *testing.T, dir string) []string {
	t.Helper()
	es, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range es {
		out = append(out, e.Name())
	}
	return out
}

func TestCommitReplacesAndAbortLeavesTheOldFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	f.WriteString("half")
	f.Abort()
	if got, _ := os.ReadFile(path); string(got) != "old" {
		t.Fatalf("after Abort: %q", got)
	}
	if f, err = Create(path); err != nil {
		t.Fatal(err)
	}
	f.WriteString("new")
	if err := f.Commit(); err != nil {
		t.Fatal(err)
	}
	f.Abort()
	if got, _ := os.ReadFile(path); string(got) != "new" {
		t.Fatalf("after Commit: %q", got)
	}
	if got := names(t, dir); len(got) != 1 {
		t.Fatalf("left behind: %v", got)
	}
	if err := f.Commit(); err == nil {
		t.Fatal("second Commit succeeded")
	}
}

func TestLinkIsFollowedAndDevicesAreWrittenInPlace(t *testing.T) {
	dir := t.TempDir()
	real, link := filepath.Join(dir, "real"), filepath.Join(dir, "link")
	os.WriteFile(real, []byte("old"), 0o644)
	if err := os.Symlink("real", link); err != nil {
		t.Skip("no symbolic links here:", err)
	}
	f, err := Create(link)
	if err != nil {
		t.Fatal(err)
	}
	f.WriteString("new")
	if err := f.Commit(); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(real); string(got) != "new" {
		t.Fatalf("target holds %q", got)
	}
	if fi, _ := os.Lstat(link); fi.Mode()&os.ModeSymlink == 0 {
		t.Fatal("the link was replaced")
	}
	if f, err = Create(os.DevNull); err != nil {
		t.Fatal(err)
	}
	f.WriteString("x")
	if err := f.Commit(); err != nil {
		t.Fatal(err)
	}
	if fi, err := os.Stat(os.DevNull); err != nil || fi.Mode().IsRegular() {
		t.Fatalf("%s is no device any more: %v %v", os.DevNull, fi, err)
	}
}

func TestBadTargets(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{"", dir, filepath.Join(dir, "absent", "f")} {
		if f, err := Create(path); err == nil {
			f.Abort()
			t.Errorf("Create(%q) succeeded", path)
		}
	}
	if got := names(t, dir); len(got) != 0 {
		t.Fatalf("left behind: %v", got)
	}
}

// Temporary files of dead processes go away with the next Create; those of
// living ones, and files that only look alike, stay.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out")
	dead := filepath.Join(dir, ".out.0123456789ab.tmp")
	for _, p := range []string{dead, filepath.Join(dir, ".out.mine.tmp"), filepath.Join(dir, "0123456789ab.tmp"), filepath.Join(dir, ".other.0123456789ab.tmp")} {
		os.WriteFile(p, nil, 0o644)
	}
	living, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	f.Abort()
	if _, err := os.Stat(living.Name()); err != nil {
		t.Error("the file of a living process:", err)
	}
	living.Abort()
	if got := names(t, dir); len(got) != 3 {
		t.Errorf("left %v", got)
	}
}
