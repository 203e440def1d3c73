package components_test

import (
	"strings"
	"testing"

	"perfsim/components"
)

func TestSplitScope(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ scope, layer, operator string }{
		{"jit(f)/layers/attn/dot_general", "jit(f)/layers/attn", "dot_general"},
		{"dot_general", "", "dot_general"},
		{"", "", ""},
		{"jit(f)/transpose(a/b)", "jit(f)", "transpose(a/b)"},
		{"a)/b", "a)", "b"},
	} {
		if l, o := components.SplitScope(c.scope); l != c.layer || o != c.operator {
			t.Errorf("SplitScope(%q) = %q, %q", c.scope, l, o)
		}
	}
}

func TestCleanScope(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"jit(f)/lm/reduce_sum[axes=(0, 1)]": "jit(f)/lm/reduce_sum",
		"a/pjit[name=x layouts=[a/b]]/add":  "a/pjit/add",
		"a/b]":                              "a/b]",
		"plain":                             "plain",
	} {
		if got := components.CleanScope(in); got != want {
			t.Errorf("CleanScope(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestJoinScope(t *testing.T) {
	t.Parallel()
	if got := components.JoinScope("step", "a/b", "aten::add"); got != "step/a/b/aten::add" {
		t.Errorf("joined: %q", got)
	}
	long := strings.Repeat("x", 300)
	if got := components.JoinScope("outer", long, long+"y"); got != long+"y" {
		t.Errorf("outer parts of a long scope are kept: %d bytes", len(got))
	}
	if got := components.JoinScope(strings.Repeat("é", 400)); len(got) != 512 {
		t.Errorf("a long part has %d bytes, not 512", len(got))
	}
	if components.JoinScope() != "" {
		t.Error("no parts make a scope")
	}
}
