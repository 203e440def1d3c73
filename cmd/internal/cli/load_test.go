package cli

import "testing"

func TestShellWord(t *testing.T) {
	for in, want := range map[string]string{"a.hlo": "a.hlo", "#2": "'#2'", "it's": `'it'\''s'`, "": "''", "a b": "'a b'", "8,16": "8,16"} {
		if got := shellWord(in); got != want {
			t.Errorf("%q becomes %s, want %s", in, got, want)
		}
	}
}
