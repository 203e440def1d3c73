package accuracy

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// callArguments are the arguments of a kernel as a table states them: tensors
// in order, and settings as "name=value".
type callArguments struct {
	tensors  []string
	settings []string
}

var (
	shaped = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^([A-Za-z_]\w*(?:/[A-Za-z_]\w*)*)\s*\[([\d,]+)\]\s*(.*)$`)
	})
	setting = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^([A-Za-z_]\w*)\s*(?:=|\s)\s*(\(.*\)|-?[\d.]+(?:e-?\d+)?|True|False)(?:\s*\(.*\))?$`)
	})
	aName  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_]\w*$`) })
	dtypes = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(fp32|f32|bf16|fp16|f16|fp8|int32|i32|int8|uint8|uint32)\b(.*)$`)
	})
)

// arguments reads the arguments of a kernel from a table:
//
//	lhsT[2048,2048] bf16, rhs[2048,2048] bf16 -> [2048,2048] bf16
//	q,k,v [128,4096] bf16 for timing
//	q/k_norm[128], cos/sin[1,128] bf16, position[1,1] int32=320 (a remark)
//	img[8,512,1,2048] fp32, filter[512,1,1,3], padding (0,0),(1,1)
//
// Where a tensor has no type, the next one's holds, else the one before. The
// value of an integer tensor is not used: a recorded tensor has no values.
func arguments(text string) (callArguments, error) {
	bad := func(why string, args ...any) (callArguments, error) {
		return callArguments{}, fmt.Errorf("the arguments %q cannot be read as shapes and types: %s", text, fmt.Sprintf(why, args...))
	}
	type tensor struct{ shape, dtype string }
	var list []tensor
	var out callArguments
	names := 0 // that share the next shape
	head, _, _ := strings.Cut(text, "->")
	pieces, ok := commas(head)
	if !ok {
		return bad("a bracket is not closed")
	}
	for n := 0; n < len(pieces); n++ {
		p := pieces[n]
		if x := shaped().FindStringSubmatch(p); x != nil {
			names += 1 + strings.Count(x[1], "/")
			t := tensor{shape: x[2]}
			rest := x[3]
			if d := dtypes().FindStringSubmatch(rest); d != nil {
				t.dtype, rest = d[1], strings.TrimSpace(d[2])
			}
			if rest != "" && !strings.HasPrefix(rest, "for ") && !strings.HasPrefix(rest, "(") && !strings.HasPrefix(rest, "=") {
				return bad("%q is unknown", rest)
			}
			for range names {
				list = append(list, t)
			}
			names = 0
			continue
		}
		if x := setting().FindStringSubmatch(p); x != nil && names == 0 {
			v := x[2]
			if strings.HasPrefix(v, "(") { // padding (0,0),(1,1) is one setting
				for n+1 < len(pieces) && strings.HasPrefix(pieces[n+1], "(") {
					n++
					v += "," + pieces[n]
				}
				if strings.Contains(v, "),(") {
					v = "(" + v + ")"
				}
			}
			out.settings = append(out.settings, x[1]+"="+v)
			continue
		}
		if !aName().MatchString(p) {
			return bad("%q has no shape", p)
		}
		names++
	}
	if names > 0 || len(list) == 0 {
		return bad("a name has no shape")
	}
	dtype := ""
	for _, t := range list { // the last one that is said
		if t.dtype != "" {
			dtype = t.dtype
		}
	}
	if dtype == "" {
		return bad("no element type")
	}
	out.tensors = make([]string, len(list))
	for k := len(list) - 1; k >= 0; k-- {
		if list[k].dtype != "" {
			dtype = list[k].dtype
		}
		out.tensors[k] = strings.Replace(dtype, "fp", "f", 1) + "[" + list[k].shape + "]"
	}
	return out, nil
}

// commas splits at the commas outside brackets, up to a semicolon.
func commas(text string) ([]string, bool) {
	var out []string
	depth, from := 0, 0
	for i, c := range text {
		switch c {
		case '[', '(':
			depth++
		case ']', ')':
			depth--
		case ';': // a remark follows
			if depth == 0 {
				return append(out, strings.TrimSpace(text[from:i])), true
			}
		case ',':
			if depth == 0 {
				out = append(out, strings.TrimSpace(text[from:i]))
				from = i + 1
			}
		}
		if depth < 0 {
			return nil, false
		}
	}
	return append(out, strings.TrimSpace(text[from:])), depth == 0
}

// accepts keeps the settings that a function of a Python source takes, by its
// parameters; others describe what the kernel computes.
func accepts(source, function string, settings []string) []string {
	at := regexp.MustCompile(`(?m)^\s*def\s+` + regexp.QuoteMeta(function) + `\s*\(`).FindStringIndex(source)
	if at == nil {
		return nil
	}
	end, depth := at[1], 1
	for end < len(source) && depth > 0 {
		switch source[end] {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth--
		}
		end++
	}
	parameters := source[at[1]:end]
	var out []string
	for _, s := range settings {
		name, _, _ := strings.Cut(s, "=")
		if strings.Contains(parameters, "**") || regexp.MustCompile(`\b`+name+`\b`).MatchString(parameters) {
			out = append(out, s)
		}
	}
	return out
}
