package query

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// node is an expression.
type node interface{}

type (
	andNode struct{ a, b node }
	orNode  struct{ a, b node }
	notNode struct{ a node }
	// termNode is FIELD, or FIELD OP VALUE[,VALUE…]; from says that the field
	// is that of an edge's producer.
	termNode struct {
		from   bool
		to     bool // said so; the consumer is meant anyway
		field  string
		op     string // "" for a bare word
		values []string
		at     int
	}
)

// maxDepth bounds nesting, maxLength an expression.
const (
	maxDepth  = 200
	maxLength = 1 << 16
)

// syntaxError says where an expression is wrong.
type syntaxError struct {
	Text string
	At   int // bytes from the start
	Msg  string
	// Names are those that exist, where the expression has an unknown one.
	Names []string
}

// KnownNames returns the names that exist where an unknown one is the error.
func (e *syntaxError) KnownNames() []string { return e.Names }

// Error shows the place.
func (e *syntaxError) Error() string {
	at := min(e.At, len(e.Text))
	text := e.Text
	// Show the surroundings of the place only.
	const around = 40
	lead := ""
	if at > around {
		cut := at - around
		for cut < at && !utf8.RuneStart(text[cut]) {
			cut++
		}
		text, at, lead = text[cut:], at-cut, "…"
	}
	if len(text) > at+around {
		end := at + around
		for end < len(text) && !utf8.RuneStart(text[end]) {
			end++
		}
		text = text[:end] + "…"
	}
	pad := strings.Repeat(" ", utf8.RuneCountInString(lead)+utf8.RuneCountInString(text[:min(at, len(text))]))
	return fmt.Sprintf("query: %s\n  %s%s\n  %s^", e.Msg, lead, strings.ToValidUTF8(text, "\uFFFD"), pad)
}

type parser struct {
	text  string
	pos   int
	depth int
}

// parse makes a tree of an expression, which must be UTF-8; a name that is not
// is found by ~ and a pattern.
func parse(text string) (node, error) {
	if len(text) > maxLength {
		return nil, fmt.Errorf("query: longer than %d bytes", maxLength)
	}
	p := &parser{text: text}
	if !utf8.ValidString(text) {
		for r, n := utf8.DecodeRuneInString(text); r != utf8.RuneError || n > 1; r, n = utf8.DecodeRuneInString(text[p.pos:]) {
			p.pos += n
		}
		return nil, p.fail("the bytes here are not UTF-8")
	}
	n, err := p.or()
	if err != nil {
		return nil, err
	}
	if p.space(); p.pos < len(p.text) {
		return nil, p.fail("& or | or the end was expected here (a value with blanks stands in quotes)")
	}
	return n, nil
}

func (p *parser) fail(format string, args ...any) error {
	return &syntaxError{Text: p.text, At: p.pos, Msg: fmt.Sprintf(format, args...)}
}

func (p *parser) space() {
	for p.pos < len(p.text) && (p.text[p.pos] == ' ' || p.text[p.pos] == '\t' || p.text[p.pos] == '\n' || p.text[p.pos] == '\r') {
		p.pos++
	}
}

// take consumes one of the given tokens; words must end where the token does.
func (p *parser) take(tokens ...string) bool {
	p.space()
	for _, t := range tokens {
		rest, ok := strings.CutPrefix(p.text[p.pos:], t)
		if !ok {
			continue
		}
		if isWordByte(t[0]) && rest != "" && isWordByte(rest[0]) {
			continue
		}
		p.pos += len(t)
		return true
	}
	return false
}

func isWordByte(c byte) bool {
	return c == '_' || c == '.' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= utf8.RuneSelf
}

func (p *parser) or() (node, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, p.fail("nested more than %d deep", maxDepth)
	}
	defer func() { p.depth-- }()
	n, err := p.and()
	for err == nil && p.take("||", "|", "or") {
		var b node
		if b, err = p.and(); err == nil {
			n = orNode{n, b}
		}
	}
	return n, err
}

func (p *parser) and() (node, error) {
	n, err := p.unary()
	for err == nil && p.take("&&", "&", "and") {
		var b node
		if b, err = p.unary(); err == nil {
			n = andNode{n, b}
		}
	}
	return n, err
}

func (p *parser) unary() (node, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, p.fail("nested more than %d deep", maxDepth)
	}
	defer func() { p.depth-- }()
	p.space()
	if !strings.HasPrefix(p.text[p.pos:], "!=") && p.take("!", "not") {
		n, err := p.unary()
		return notNode{n}, err
	}
	if p.take("(") {
		n, err := p.or()
		if err != nil {
			return nil, err
		}
		if !p.take(")") {
			return nil, p.fail("a ) is missing here")
		}
		return n, nil
	}
	return p.term()
}

func (p *parser) term() (node, error) {
	p.space()
	t := termNode{at: p.pos}
	name := p.word()
	if name == "" {
		return nil, p.fail("a field was expected here")
	}
	for _, x := range []struct {
		prefix string
		flag   *bool
	}{{"from.", &t.from}, {"producer.", &t.from}, {"to.", &t.to}, {"consumer.", &t.to}} {
		if rest, ok := strings.CutPrefix(name, x.prefix); ok {
			*x.flag, name = true, rest
			break
		}
	}
	t.field = strings.ToLower(name)
	p.space()
	for _, op := range []string{"!=", "!~", "<=", ">=", "==", "=", "<", ">", "~"} {
		if strings.HasPrefix(p.text[p.pos:], op) {
			p.pos += len(op)
			t.op = op
			if op == "==" {
				t.op = "="
			}
			break
		}
	}
	if t.op == "" {
		return t, nil
	}
	for {
		v, err := p.value()
		if err != nil {
			return nil, err
		}
		t.values = append(t.values, v)
		if !p.take(",") {
			return t, nil
		}
	}
}

func (p *parser) word() string {
	from := p.pos
	for p.pos < len(p.text) && isWordByte(p.text[p.pos]) {
		p.pos++
	}
	return p.text[from:p.pos]
}

// value reads a quoted or a bare value; a bare one ends at a blank or at one
// of & | ) ,.
func (p *parser) value() (string, error) {
	p.space()
	if p.pos < len(p.text) && (p.text[p.pos] == '"' || p.text[p.pos] == '\'') {
		quote := p.text[p.pos]
		end := strings.IndexByte(p.text[p.pos+1:], quote)
		if end < 0 {
			return "", p.fail("a closing %c is missing", quote)
		}
		v := p.text[p.pos+1 : p.pos+1+end]
		p.pos += end + 2
		return v, nil
	}
	from := p.pos
	for p.pos < len(p.text) && !strings.ContainsRune("&|),", rune(p.text[p.pos])) && !unicode.IsSpace(rune(p.text[p.pos])) {
		p.pos++
	}
	if p.pos == from {
		return "", p.fail("a value was expected here")
	}
	return p.text[from:p.pos], nil
}

// Number reads a number, with a time unit where it has one: 10us is 10000.
func number(s string) (float64, bool) {
	low := strings.ToLower(s)
	scale := 1.0
	for _, u := range []struct {
		suffix string
		scale  float64
	}{{"ns", 1}, {"us", 1e3}, {"µs", 1e3}, {"ms", 1e6}, {"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30}, {"s", 1e9}} {
		if rest, ok := strings.CutSuffix(low, u.suffix); ok {
			low, scale = rest, u.scale
			break
		}
	}
	v, err := strconv.ParseFloat(low, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, false
	}
	return v * scale, true
}
