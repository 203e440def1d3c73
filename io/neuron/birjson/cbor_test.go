package birjson

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"perfsim/io/format"
)

// unmarshalOrdered decodes JSON with whole numbers as int64.
func unmarshalOrdered(text string, doc *any) error {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(doc); err != nil {
		return err
	}
	*doc = whole(*doc)
	return nil
}

func whole(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, _ := v.Float64()
		return f
	case []any:
		for i := range v {
			v[i] = whole(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = whole(v[k])
		}
	}
	return v
}

// The same module comes out of CBOR and of text.
func TestCBORIsText(t *testing.T) {
	text, err := readText(t, appendixA, 1)
	if err != nil {
		t.Fatal(err)
	}
	var doc any
	plain := toCBOR(t, appendixA, &doc)
	sorted, err := cbor.CoreDetEncOptions().EncMode()
	if err != nil {
		t.Fatal(err)
	}
	core, err := sorted.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	indefinite := append([]byte("\xd9\xd9\xf7\xbf"), plain[1:]...)
	indefinite = append(indefinite, 0xff)
	for i, b := range [][]byte{plain, core, indefinite} {
		if !Sniff(b[:min(len(b), format.SniffLen)]) {
			t.Errorf("encoding %d is not recognised", i)
		}
		src, err := format.FromBytes("test.cbor", b)
		if err != nil {
			t.Fatal(err)
		}
		m, err := Read(t.Context(), src, format.Options{Jobs: 2})
		if err != nil {
			t.Errorf("encoding %d: %v", i, err)
			continue
		}
		m.Name = text.Name
		// The key order of a map is the encoder's, and numbers lose their
		// spelling: 2.0 comes back as 2. Leave out what depends on either.
		m.Instr.Text.Drop()
		want := *text
		want.Instr.Text.Drop()
		if diff := moduleDiff(m, &want); diff != "" {
			t.Errorf("encoding %d: %s", i, diff)
		}
	}
}
