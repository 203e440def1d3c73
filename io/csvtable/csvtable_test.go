package csvtable

import "testing"

func TestInert(t *testing.T) {
	for in, want := range map[string]string{"=cmd|' /C calc'!A0": "'=cmd|' /C calc'!A0", "+1": "'+1", "-1": "'-1", "@x": "'@x", "\t=1": "'\t=1", "a=1": "a=1", "": ""} {
		if got := inert(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}
