package machine

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perfsim/ecs/golden"
)

// What Load returns without parsing YAML is what the YAML says.
func TestLoadedIsTheYAML(t *testing.T) {
	for _, n := range Names() {
		text, err := files.ReadFile(n + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		want, err := Parse(n+".yaml", text)
		if err != nil {
			t.Fatal(err)
		}
		golden.Check(t, n+".go", source(t, want))
		for _, name := range append(want.Aliases, n) {
			got, err := Load(name)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%s differs (run go test ./components/machine -update):\n%s", name, d)
			}
		}
	}
}

func TestEmbeddedMachinesAreValid(t *testing.T) {
	for _, n := range Names() {
		m, err := Load(n)
		if err != nil {
			t.Fatal(err)
		}
		if m.Name != n {
			t.Errorf("file %s.yaml describes %q", n, m.Name)
		}
		if len(m.Sources) == 0 {
			t.Errorf("%s names no sources", n)
		}
	}
}

func TestLoadByAlias(t *testing.T) {
	m, err := Load("gen3")
	if err != nil {
		t.Fatal(err)
	}
	if m.Name != "trn2" || m.Clock.DVE != 96 {
		t.Errorf("gen3 is %s with a DVE clock of %d, want trn2 and 96", m.Name, m.Clock.DVE)
	}
}

func TestParseNamesTheField(t *testing.T) {
	text, err := Text("trn2")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, new, want string }{
		{"dve: 96", "dve: 0", "clock.dve"},
		{"form: matmul", "form: magic", "form is"},
		{"collective_reflow: share", "collective_reflow: luck", "collective_reflow"},
		{"arch: 30", "archh: 30", "archh"},
		{"[0.75, 0.25, 0, 0]", "[.nan]", "stream_shares"},
	} {
		_, err := Parse("x.yaml", []byte(strings.Replace(string(text), c.old, c.new, 1)))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v does not name %s", c.new, err, c.want)
		}
	}
}

func TestLoadUnknown(t *testing.T) {
	if _, err := Load("nosuchmachine"); err == nil || !strings.Contains(err.Error(), "trn2") {
		t.Errorf("error %v does not list the machines", err)
	}
}
