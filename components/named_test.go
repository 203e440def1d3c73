package components

import "testing"

func TestNamed(t *testing.T) {
	for _, c := range []struct {
		name, typed string
		want        bool
	}{
		{"abc", "abc", true}, {"abc", "bc", false}, {"abc", "…bc", true}, {"abc", "…abc", false}, {"abc", "…", false}, {"…x", "…x", true}, {"", "…", false},
	} {
		if got := Named(c.name, c.typed); got != c.want {
			t.Errorf("Named(%q, %q) is %v", c.name, c.typed, got)
		}
	}
}
