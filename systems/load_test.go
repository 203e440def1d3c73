package systems

import (
	"strings"
	"testing"

	"perfsim/components/opgraph"
)

// Modules of one name are told apart by their places.
func TestPickGraph(t *testing.T) {
	graphs := []*opgraph.Graph{opgraph.NewGraph("module"), opgraph.NewGraph("module"), opgraph.NewGraph("module")}
	for _, tt := range []struct {
		module string
		want   int // place, or -1 for an error
	}{{"#1", 0}, {"#3", 2}, {"#0", -1}, {"#4", -1}, {"other", -1}, {"", -1}, {"module", 0}} {
		l := &Loaded{Input: "in.mlir", settings: Settings{GraphModule: tt.module}}
		g, err := l.pick(graphs)
		switch {
		case tt.want < 0 && (err == nil || !strings.Contains(err.Error(), "in.mlir")):
			t.Errorf("--module %q: graph %p, error %v; want an error", tt.module, g, err)
		case tt.want >= 0 && (err != nil || g != graphs[tt.want]):
			t.Errorf("--module %q: graph %p, error %v; want the graph in place %d", tt.module, g, err, tt.want+1)
		}
	}
}
