package birjson

import (
	"bytes"
	"strings"
	"testing"

	"perfsim/components"
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

// A byte order mark before the text is no part of it, plain and behind blanks;
// places in errors count from behind it.
func TestByteOrderMark(t *testing.T) {
	const bom = "\xef\xbb\xbf"
	for _, text := range []string{bom + appendixA, bom + "\r\n " + appendixA} {
		m, err := readText(t, text, 1)
		if err != nil {
			t.Fatal(err)
		}
		if m.Instr.Len() != 2 || m.Edges.Declared[components.Flow] != 1 {
			t.Errorf("%d instructions, edges %v", m.Instr.Len(), m.Edges.Declared)
		}
	}
	for text, want := range map[string]string{
		bom:             "test.bir.json:1:1: the input is empty",
		bom + "[1]":     "test.bir.json:1:1: the module: expected '{', found '['",
		bom + bom + "{": "test.bir.json:1:5: the input ends inside the module",
	} {
		if _, err := readText(t, text, 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Sorted keys of CBOR put a long table of lanes before the functions.
func TestSniffCBORWithLanesFirst(t *testing.T) {
	head := append([]byte("\xa3\x64name\x61m\x67perfsim\xa1\x65lanes\x99\x10\x00"), bytes.Repeat([]byte("\xa1\x64name\x61x"), 600)...)
	if !Sniff(head) {
		t.Error("not recognised")
	}
	if Sniff([]byte("\xa2\x64name\x61m\x65value\x01")) {
		t.Error("any map is taken for BIR")
	}
}
