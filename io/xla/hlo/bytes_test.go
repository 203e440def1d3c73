package hlo

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"perfsim/components/opgraph"
)

// TestBytes: strings keep bytes that are not UTF-8 or not printable exactly,
// whether the file has them as they are or escaped, and are written in ASCII
// as XLA's CEscape writes them. Values that are kept as text are kept byte by
// byte.
func TestBytes(t *testing.T) {
	const raw = "l\xfe\xc3(\u00e9\x01\x7f\n\"\\"
	const octal = `l\376\303(\303\251\001\177\n\"\\`
	str := func(key opgraph.OpAttr) func(g *opgraph.Graph) string {
		return func(g *opgraph.Graph) string { return g.AttrStr(g.Comps.Root[g.Entry], key) }
	}
	entry := func(attrs string) string {
		return "HloModule m\nENTRY e {\n a = f32[] parameter(0)\n ROOT b = f32[] custom-call(a)" + attrs + "\n}"
	}
	root := func(g *opgraph.Graph) opgraph.OpID { return g.Comps.Root[g.Entry] }
	in := "\"" + strings.NewReplacer(`"`, `\"`, `\`, `\\`).Replace(raw) + "\"" // bytes as they are
	for _, c := range []struct {
		name, text string
		get        func(g *opgraph.Graph) string
		want       string // in the graph
		written    string // in the text
	}{
		{"custom_call_target", entry(", custom_call_target=" + in), str(opgraph.AttrCustomCallTarget), raw, `custom_call_target="` + octal + `"`},
		{"custom_call_target escaped", entry(`, custom_call_target="` + octal + `"`), str(opgraph.AttrCustomCallTarget), raw, `custom_call_target="` + octal + `"`},
		{"hexadecimal and rare escapes", entry(`, custom_call_target="\xfe\a\b\f\v\?\'"`), str(opgraph.AttrCustomCallTarget), "\xfe\a\b\f\v?'", `custom_call_target="\376\007\010\014\013?'"`},
		{"op_name", entry(", metadata={op_name=" + in + "}"), func(g *opgraph.Graph) string { return g.Text(g.Ops.OpName[root(g)]) }, raw, `op_name="` + octal + `"`},
		{"source_file", entry(", metadata={source_file=" + in + "}"), func(g *opgraph.Graph) string { return g.Text(g.Ops.SourceFile[root(g)]) }, raw, `source_file="` + octal + `"`},
		{"the largest line", entry(", metadata={source_line=4294967295}"), func(g *opgraph.Graph) string { return fmt.Sprint(g.Ops.SourceLine[root(g)]) }, "4294967295", "source_line=4294967295"},
		{"backend_config string", entry(", backend_config=" + in), str(opgraph.AttrBackendConfig), raw, `backend_config="` + octal + `"`},
		{"backend_config object", entry(", backend_config={\"a\":\"\xfe\"}"), str(opgraph.AttrBackendConfig), "{\"a\":\"\xfe\"}", "backend_config={\"a\":\"\xfe\"}"},
		{"async_execution_thread", entry(", async_execution_thread=" + in), str(opgraph.AttrThread), raw, `async_execution_thread="` + octal + `"`},
		{"sharding", entry(", sharding={\xfe}"), str(opgraph.AttrSharding), "{\xfe}", "sharding={\xfe}"},
		{"sharding in quotes", entry(`, sharding="{replicated} \376"`), str(opgraph.AttrSharding), "{replicated} \xfe", `sharding="{replicated} \376"`},
		{"frontend_attributes", entry(", frontend_attributes={a=\"\xfe\\376\"}"), str(opgraph.AttrFrontend), "{a=\"\xfe\\376\"}", "frontend_attributes={a=\"\xfe\\376\"}"},
		{"an attribute kept as text", entry(", zz=q\xfe{\xff}"), func(g *opgraph.Graph) string { v, _ := g.Raw(root(g), "zz"); return v }, "q\xfe{\xff}", "zz=q\xfe{\xff}"},
		{"literal of an array", "HloModule m\nENTRY e {\n a = f32[2] constant({\xfe, 2})\n}", str(opgraph.AttrLiteral), "{\xfe, 2}", "constant({\xfe, 2})"},
		{"layout", "HloModule m\nENTRY e {\n a = f32[2]{0:\xfe} parameter(0)\n}", func(g *opgraph.Graph) string { return g.ShapeText(g.Ops.Shape[root(g)]) }, "f32[2]{0:\xfe}", "f32[2]{0:\xfe}"},
		{"module attribute", "HloModule m, x={\xfe}\nENTRY e {\n a = f32[2] parameter(0)\n}", func(g *opgraph.Graph) string { return g.Text(g.ModuleAttrs[0].Value) }, "{\xfe}", ", x={\xfe}\n"},
		{"execution_thread", "HloModule m\nENTRY e {\n a = f32[2] parameter(0)\n}, execution_thread=" + in, func(g *opgraph.Graph) string { return g.Text(g.Comps.Thread[0]) }, raw, `execution_thread="` + octal + `"`},
		{"file of a frame", "HloModule m\nFileNames\n1 " + in + "\nFunctionNames\n1 \"f\"\nFileLocations\n1 {file_name_id=1 function_name_id=1 line=2}\nStackFrames\n1 {file_location_id=1 parent_frame_id=1}\nENTRY e {\n a = f32[2] parameter(0)\n}",
			func(g *opgraph.Graph) string { return g.Text(g.Frames[0].File) }, raw, `1 "` + octal + `"`},
		{"module name", "HloModule jit(f)/a:0\nENTRY e {\n a = f32[2] parameter(0)\n}", func(g *opgraph.Graph) string { return g.Text(g.Name) }, "jit(f)/a:0", "HloModule jit(f)/a:0\n"},
		{"module name with a percent sign", "HloModule %%a\nENTRY e {\n a = f32[2] parameter(0)\n}", func(g *opgraph.Graph) string { return g.Text(g.Name) }, "%a", "HloModule %%a\n"},
		{"module name like a comment", "HloModule %//a\nENTRY e {\n a = f32[2] parameter(0)\n}", func(g *opgraph.Graph) string { return g.Text(g.Name) }, "//a", "HloModule %//a\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := one(t, c.text)
			if got := c.get(g); got != c.want {
				t.Errorf("read as %q, want %q", got, c.want)
			}
			if text := AppendText(nil, g); !bytes.Contains(text, []byte(c.written)) {
				t.Errorf("written as %q, want %q in it", text, c.written)
			}
		})
	}
}

// TestNameBytes: a name is a word; the name of a module is printable ASCII.
// Another byte is a mistake at its place.
func TestNameBytes(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"HloModule l\xfeENTRY\nENTRY e {\n a = f32[] parameter(0)\n}", `t:1:12: "\xfe" cannot be in the name of a module, which is printable ASCII`},
		{"HloModule größe\nENTRY e {\n a = f32[] parameter(0)\n}", `t:1:13: "ö" cannot be in the name of a module, which is printable ASCII`},
		{"HloModule a\x00\nENTRY e {\n a = f32[] parameter(0)\n}", `t:1:12: "\x00" cannot be in the name of a module, which is printable ASCII`},
		{"HloModule %\nENTRY e {\n a = f32[] parameter(0)\n}", `t:2:1: expected the name of the module, found "ENTRY"`},
		{"HloModule m\nENTRY e\xfe {\n a = f32[] parameter(0)\n}", `t:2:8: expected '{' to begin computation e, found "\xfe"`},
		{"HloModule m\nENTRY e {\n a\xfe = f32[] parameter(0)\n}", `t:3:3: expected '=' after instruction a, found "\xfe"`},
		{"HloModule m\nENTRY e {\n a = f32[] param\xfeeter(0)\n}", `t:3:17: expected '(' after opcode param, found "\xfe"`},
		{"HloModule m\nENTRY e {\n a = f32[] parameter(0)\n b = f32[] negate(a\xfe)\n}", `t:4:20: expected ')' to end the operands, found "\xfe"`},
		{"HloModule m\nENTRY e {\n a = f32[] parameter(0), k\xfe=1\n}", `t:3:27: expected '=' after attribute k, found "\xfe"`},
	} {
		if _, err := ReadText("t", []byte(c.in)); err == nil || err.Error() != c.want {
			t.Errorf("error %v\nwant  %s", err, c.want)
		}
	}
}

// TestWriteBytes: what a proto or a builder brings that text cannot hold is
// changed when written, in a way that reads back to what is written.
func TestWriteBytes(t *testing.T) {
	for _, c := range []struct{ name, want string }{
		{"l\xfe", "l_"}, {"a b,c\n\x00\x7f", "a_b_c___"}, {"größe", "gr____e"}, {"", "module"}, {"%x", "%%x"}, {"/*x*/", "%/*x*/"},
	} {
		g := opgraph.NewGraph(c.name)
		g.Entry = g.BeginComputation("e\xff")
		g.AddParameter("a\xff", g.Array(opgraph.ElemF32), 0)
		g.EndComputation(opgraph.NoOp)
		text := AppendText(nil, g)
		want := "HloModule " + c.want + "\n\nENTRY %e_ (a_: f32[]) -> f32[] {\n  ROOT %a_ = f32[] parameter(0)\n}\n"
		if string(text) != want {
			t.Errorf("%q is written as\n%s\nwant\n%s", c.name, text, want)
		}
		back, err := ReadText("t", text)
		if err != nil {
			t.Error(err)
		} else if again := AppendText(nil, back[0]); !bytes.Equal(again, text) {
			t.Errorf("%s is read and written as %s", text, again)
		}
	}
}

// TestUnknownOpcodes: a proto may have any string as an opcode; text has a word
// that is no opcode.
func TestUnknownOpcodes(t *testing.T) {
	for _, c := range [][2]string{
		{"", "unknown"}, {"new-opcode", "new-opcode"}, {"paramete\x90", "paramete_"}, {"dot-start", "dot-start_"}, {"add", "add_"}, {"a(b", "a_b"}, {"pa ram", "pa_ram"},
	} {
		g := opgraph.NewGraph("m")
		g.Entry = g.BeginComputation("e")
		op := g.AddOp(opgraph.OpUnknown, "a", g.Array(opgraph.ElemF32))
		g.SetAttrStr(op, opgraph.AttrOpcode, c[0])
		g.EndComputation(op)
		back := one(t, string(AppendText(nil, g)))
		if got := back.AttrStr(0, opgraph.AttrOpcode); back.Ops.Kind[0] != opgraph.OpUnknown || got != c[1] {
			t.Errorf("opcode %q comes back as %v %q, want %q", c[0], back.Ops.Kind[0], got, c[1])
		}
	}
}
