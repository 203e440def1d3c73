package chakra

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"perfsim/components"
	"perfsim/components/datadir"
	"perfsim/io/format"
	"perfsim/io/internal/readtest"
)

func readFile(t *testing.T, path string) *components.Module {
	t.Helper()
	src, err := format.Open(context.Background(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	if !Importer.Sniff(src.Head()) {
		t.Error("not recognised")
	}
	m, err := read(context.Background(), src, format.Options{Jobs: 1})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func noteCount(m *components.Module, code string) uint64 {
	for _, n := range m.Notes {
		if n.Code == code {
			return uint64(n.Count)
		}
	}
	return 0
}

// Nodes and dependencies are as many as the list of the files says, which
// was made with another reader.
func TestChakraFiles(t *testing.T) {
	list, err := os.ReadFile(datadir.Path(t, "MANIFEST.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, line := range strings.Split(string(list), "\n") {
		f := strings.Split(line, "\t")
		if len(f) < 8 || f[1] != "chakra_et" || f[6] == "" {
			continue
		}
		seen++
		t.Run(filepath.Base(f[0]), func(t *testing.T) {
			nodes, _ := strconv.Atoi(f[6])
			deps, _ := strconv.ParseUint(f[7], 10, 64)
			m := readFile(t, datadir.Path(t, f[0]))
			if m.Instr.Len() != nodes {
				t.Errorf("%d nodes, want %d", m.Instr.Len(), nodes)
			}
			d := m.Edges.Declared
			got := d[components.Flow] + d[components.Ordered]
			for _, code := range []string{"control-cycle", "unresolved-control-dependency", "own-parent"} {
				got += noteCount(m, code)
			}
			if got != deps {
				t.Errorf("%d dependencies, want %d", got, deps)
			}
			t.Logf("%d nodes, %d deps, notes %s", nodes, deps, readtest.Codes(m))
		})
	}
	if seen < 6 {
		t.Errorf("%d files", seen)
	}
	// Both flavours of one trace have the same durations and data dependencies.
	a := readFile(t, datadir.Path(t, "chakra_et", "mlcommons__chakra__feeder_tests__chakra.0.et.gz"))
	b := readFile(t, datadir.Path(t, "chakra_et", "mlcommons__chakra__json_trace__chakra.0.json.gz"))
	sum := func(m *components.Module) (n uint64) {
		for _, d := range m.Instr.MeasuredDur.Slice() {
			n += uint64(d)
		}
		return n
	}
	if sum(a) != sum(b) || a.Edges.Counts()[components.Flow] != b.Edges.Counts()[components.Flow] {
		t.Errorf("%d ns and %v against %d ns and %v", sum(a), a.Edges.Counts(), sum(b), b.Edges.Counts())
	}
}

// Nodes, parents and tensor dependencies against encoding/json and a second
// derivation of read-after-write: for each read, the last leaf before it that
// put the tensor out.
func TestHostFiles(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join(datadir.Path(t, "pytorch_et"), "*"))
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			m := readFile(t, path)
			file, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			d := json.NewDecoder(file)
			if strings.HasSuffix(path, ".gz") {
				z, err := gzip.NewReader(file)
				if err != nil {
					t.Fatal(err)
				}
				d = json.NewDecoder(z)
			}
			var trace struct {
				Nodes []struct {
					ID       uint64
					Parent   *uint64
					CtrlDeps *uint64 `json:"ctrl_deps"`
				}
			}
			if err := d.Decode(&trace); err != nil {
				t.Fatal(err)
			}
			if m.Instr.Len() != len(trace.Nodes) {
				t.Errorf("%d nodes, want %d", m.Instr.Len(), len(trace.Nodes))
			}
			parents, leaves := uint64(0), map[uint64]bool{}
			for _, n := range trace.Nodes {
				leaves[n.ID] = true
			}
			for _, n := range trace.Nodes {
				p := n.Parent
				if p == nil {
					p = n.CtrlDeps
				}
				if *p != n.ID {
					parents++
					leaves[*p] = false
				}
			}
			if got := m.Edges.Declared[components.Ordered]; got != parents {
				t.Errorf("%d parents, want %d", got, parents)
			}
			count := 0
			for _, leaf := range leaves {
				if leaf {
					count++
				}
			}
			// Work is in leaves that are no views, and in communications that have children.
			work := 0
			for i, dur := range m.Instr.MeasuredDur.Slice() {
				if dur > 0 && m.OpcodeName(m.Instr.Opcode.At(i)) != "CollectiveCompute" {
					work++
				}
				if m.OpcodeName(m.Instr.Opcode.At(i)) == "CollectiveCompute" && leaves[m.Instr.Ref.At(i)] {
					work++
				}
			}
			if work > count || work < count/2 {
				t.Errorf("%d nodes with work, %d leaves", work, count)
			}
			t.Logf("%d nodes, edges %v, notes %s", m.Instr.Len(), m.Edges.Declared, readtest.Codes(m))
		})
	}
}
