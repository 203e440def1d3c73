package hlo

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"

	"perfsim/components/datadir"
	"perfsim/components/opgraph"
)

// corpus calls f for each module of the corpus of XLA's test modules.
func corpus(t testing.TB, f func(name string, text []byte)) {
	t.Helper()
	b := readFile(t, datadir.Path(t, "hlo_corpus", "openxla__xla__embedded_test_modules.tar.gz"))
	for r := tar.NewReader(bytes.NewReader(b)); ; {
		h, err := r.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg && strings.HasSuffix(h.Name, ".hlo") {
			f(h.Name, text)
		}
	}
}

// A reason why modules of the corpus are refused. The modules were lifted out
// of string constants of C++ tests: many are templates whose holes the test
// fills, some are a part of the text only, and some are wrong on purpose.
type reason struct {
	title string
	count int
	text  *regexp.Regexp // of the module; nil matches any
	msg   *regexp.Regexp
}

// hole matches what the tests replace before parsing: $name, {{NAME}}, %s,
// %1$d, <<NAME>>, and words in capitals in the place of a type or a value.
var hole = regexp.MustCompile(`\$[\w{]|\{\{[A-Z_]+\}\}|%(\d\$)?[sd]|<<\w+>>|REPLICA_GROUPS|TYPE\d?\[|INDICES_BOUND`)

func reasons() []reason {
	re := regexp.MustCompile
	return []reason{
		{"a template whose holes the test fills", 253, hole,
			re(`^expected |unknown element type "D?TYPE|constant ".*" is no value of|replica groups begin with|is not one of its values|^computation .* is not closed`)},
		{"only a part of the text: the test joins several strings", 8, nil, re(`^(computation .*|comment|constant) is not closed|found the end of the input`)},
		{"an element type that does not exist", 1, nil, re(`^unknown element type "g32"`)},
		{"too few operands", 6, nil, re(`\d operands, want (at least )?\d`)},
		{"an operand that is not defined, or is in another computation", 3, nil, re(`^operand ".*" is not defined before`)},
		{"a tuple index outside the tuple, or no number", 6, nil, re(`has no element \[-?\d\]$|^expected an integer, found "a"$`)},
		{"an axis the mesh does not have, or a mesh of other size than its devices", 3, nil, re(`^the mesh `)},
		{"a dimension outside the rank, or not one where one is needed", 7, nil, re(`is outside rank \d|want one dimension`)},
		{"a broadcast that does not say where its dimensions go", 2, nil, re(`broadcast .*0 dimensions for an operand of rank`)},
		{"a result shape that must be stated", 1, nil, re(`its shape must be stated`)},
		{"replica groups that do not name each device once", 1, nil, re(`do not name each device once`)},
		{"dim_labels that are none", 1, nil, re(`^dim_labels=`)},
		{"a computation or control predecessor that does not exist", 2, nil, re(`^(computation|control predecessor) ".*" (does not exist|is not defined)`)},
		{"a malformed window or alias", 4, nil, re(`window item _0|^expected '.' (to end the list|before the list|to end the aliases)`)},
		{"two ENTRY computations, or two roots", 2, nil, re(`second (ENTRY|ROOT)`)},
		{"a reshape with another number of elements", 1, nil, re(`^reshape .* elements, result`)},
		{"an async-done or async-update of something that was not started", 4, nil, re(`of an async-start$`)},
	}
}

// TestCorpus reads every module, checks that a refusal has a place and a known
// reason, and that what is read survives writing.
func TestCorpus(t *testing.T) {
	if testing.Short() {
		t.Skip("reads 7,964 modules")
	}
	modules, read := 0, 0
	list := reasons()
	got := make([][]string, len(list))
	corpus(t, func(name string, text []byte) {
		modules++
		graphs, err := ReadText(name, text)
		if err == nil {
			read++
			for _, g := range graphs {
				roundTrip(t, name, g)
			}
			return
		}
		var e *Error
		if !errors.As(err, &e) || e.Line < 1 || e.Col < 1 || e.File != name {
			t.Errorf("%s: error without a place: %v", name, err)
			return
		}
		for i, r := range list {
			if (r.text == nil || r.text.Match(text)) && r.msg.MatchString(e.Msg) {
				got[i] = append(got[i], err.Error())
				return
			}
		}
		t.Errorf("refused for a reason not listed: %v", err)
	})
	for i, r := range list {
		if len(got[i]) != r.count {
			t.Errorf("%q: %d modules, want %d:\n\t%s", r.title, len(got[i]), r.count, strings.Join(got[i][:min(len(got[i]), 12)], "\n\t"))
		}
	}
	if modules != 7964 || read != 7659 {
		t.Errorf("%d of %d modules read, want 7659 of 7964", read, modules)
	}
}

// roundTrip writes a graph and reads it back.
func roundTrip(t testing.TB, name string, g *opgraph.Graph) {
	t.Helper()
	text := AppendText(nil, g)
	back, err := ReadText(name+" (written)", text)
	if err != nil {
		t.Errorf("%s: written text does not read: %v", name, err)
		return
	}
	if len(back) != 1 {
		t.Errorf("%s: one module became %d", name, len(back))
		return
	}
	if d := graphDiff(g, back[0], diffOptions{}); d != "" {
		t.Errorf("%s: written and read graph differ: %s", name, d)
	}
	if again := AppendText(nil, back[0]); !bytes.Equal(text, again) {
		t.Errorf("%s: writing twice gives different text", name)
	}
}
