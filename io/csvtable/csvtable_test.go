package csvtable

import "testing"

func TestInert(t *testing.T) {
	for in, want := range map[string]string{"=cmd|' /C calc'!A0": "'=cmd|' /C calc'!A0", "+1": "'+1", "-1": "'-1", "@x": "'@x", "\t=1": "'\t=1", "a=1": "a=1", "": ""} {
		if got := inert(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

// Numbers of everyday size have no exponent; all read back as they were.
func TestNumber(t *testing.T) {
	for x, want := range map[float64]string{5676038: "5676038", -1638400: "-1638400", 0: "0", 0.25: "0.25", 1e20: "100000000000000000000", 1e21: "1e+21", 3e-5: "0.00003", 1e-7: "1e-07"} {
		if got := number(x); got != want {
			t.Errorf("%g is %q, want %q", x, got, want)
		}
	}
}
