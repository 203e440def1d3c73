package campaign

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/rogpeppe/go-internal/txtar"

	"perfsim/cmd/internal/cli"
)

// seed is an input that is mutated.
type seed struct {
	name string
	data []byte
	pack string // "gz" where the input is compressed again after the mutation
}

// mostSeed is the size in bytes up to which a file is a seed: mutations of a
// small file meet more of its structure.
const mostSeed = 96 << 10

// perfsim runs one command line in this process.
func perfsim(t testing.TB, args ...string) {
	t.Helper()
	var out bytes.Buffer
	if status := cli.Main(args, strings.NewReader(""), &out, &out); status != 0 {
		t.Fatalf("perfsim %s: status %d: %s", strings.Join(args, " "), status, out.String())
	}
}

// seeds returns the inputs: the examples in every form that perfsim writes,
// generated modules, the files within the scripts of package cli and the
// tests of the readers, and where it is there the shared data.
func seeds(t testing.TB) []seed {
	t.Helper()
	dir := t.TempDir()
	var out []seed
	add := func(path string) {
		b, err := os.ReadFile(path)
		if err != nil || len(b) == 0 {
			return
		}
		s := seed{name: filepath.Base(path), data: b}
		if bytes.HasPrefix(b, []byte{0x1f, 0x8b}) {
			s.data, s.pack = gunzip(b), "gz"
		}
		if len(s.data) > 0 && len(s.data) <= mostSeed {
			out = append(out, s)
		}
	}
	tree := func(root string) {
		filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.Type().IsRegular() {
				add(path)
			}
			return nil
		})
	}
	examples, err := filepath.Glob("../../../examples/*.json")
	if err != nil || len(examples) == 0 {
		t.Fatal("no examples", err)
	}
	for _, e := range examples {
		name := filepath.Base(e)
		add(e)
		perfsim(t, "convert", "-q", e, filepath.Join(dir, name+".psim"))
		perfsim(t, "run", "-q", "-o", filepath.Join(dir, name+".d"), e)
		perfsim(t, "export", "-q", e, filepath.Join(dir, name+".chrome.json"))
	}
	for i, args := range [][]string{{}, {"--loops", "2", "--nested", "--body", "4"}, {"--operands", "--blocks", "3"}, {"--operands", "--loops", "2", "--body", "8"}} {
		base := filepath.Join(dir, "gen"+string(rune('0'+i)))
		for _, ending := range []string{".psim", ".bir.json", ".psim.gz"} {
			perfsim(t, append([]string{"gen", "-q", "-n", "120", base + ending}, args...)...)
		}
	}
	tree(dir)
	scripts, _ := filepath.Glob("../cli/testdata/script/*.txt")
	for _, s := range scripts {
		a, err := txtar.ParseFile(s)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range a.Files {
			if len(f.Data) > 0 && !strings.HasSuffix(f.Name, ".py") {
				out = append(out, seed{name: filepath.Base(f.Name), data: f.Data})
			}
		}
	}
	for _, root := range []string{"../../../io", "../../../../shared/data", "../../../../shared/cases/hostile"} {
		filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.Type().IsRegular() && !strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, ".py") && !strings.Contains(path, "testdata/fuzz") {
				add(path)
			}
			return nil
		})
	}
	out = slices.DeleteFunc(out, func(s seed) bool { return !strings.Contains(s.name, *only) })
	slices.SortStableFunc(out, func(a, b seed) int { return strings.Compare(a.name, b.name) })
	return out
}

// gunzip returns the first mostSeed+1 bytes of a gzip file, or nothing.
func gunzip(b []byte) []byte {
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil
	}
	out, _ := io.ReadAll(io.LimitReader(z, mostSeed+1))
	return out
}

func gzipped(b []byte) []byte {
	var out bytes.Buffer
	z, _ := gzip.NewWriterLevel(&out, 1)
	z.Write(b)
	z.Close()
	return out.Bytes()
}
