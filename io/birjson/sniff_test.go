package birjson

import (
	"strings"
	"testing"
)

func TestSniff(t *testing.T) {
	long := strings.Repeat(`"x",`, 3000)
	for text, want := range map[string]bool{
		appendixA:                        true,
		"\xef\xbb\xbf \n{\"functions\":": true,
		`{"arch":"gen3","attributes":{"a":[` + long:      true,
		`{"attributes":{"neuron_core_id":0,"a":[` + long: true,
		`{"artifact_path":"/x"`:                          true,
		`{"traceEvents":[]}`:                             false,
		`[{"functions":1}]`:                              false,
		`{"attributes":{}}`:                              false,
		``:                                               false,
		"\xd9\xd9\xf7\xa1\x69functions\x80":              true,
		"\xa1\x69something":                              false,
		`{"Sum":{"compiletime":{"x":1}},"metadata":"arch"}`: false,
	} {
		if got := Sniff([]byte(text)[:min(len(text), 4096)]); got != want {
			t.Errorf("%.40q: %t", text, got)
		}
	}
}
