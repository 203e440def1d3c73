package goal

import (
	"bytes"
	"context"
	"io"
	"math"
	"strconv"
)

// opKind is what an operation does.
type opKind uint8

const (
	opCalc opKind = iota
	opSend
	opRecv
)

// wildcard is the wildcard for a source or a tag.
const wildcard = -1

// op is one operation of a rank.
type op struct {
	kind   opKind
	posted bool // something starts after its start
	rank   int32
	peer   int32
	tag    int64
	size   uint64 // bytes, or ns of a calc
	unit   int32  // cpu of a calc, nic of the others
	label  string
	at     pos
}

// order is a dependency between operations.
type order struct {
	from, to int // the first waits for the second
	start    bool
}

// schedule is a whole text.
type schedule struct {
	ranks  int
	ops    []op
	orders []order
}

// parser reads GOAL.
type parser struct {
	*lexer
	s      schedule
	labels map[string]int // of the rank being read
	seen   map[int64]pos  // ranks
}

func newParser(r io.Reader) *parser { return &parser{lexer: newLexer(r), seen: map[int64]pos{}} }

// number reads a whole number; bytes may have the unit b behind them.
func (p *parser) number(what string, least, most int64, unit bool) (int64, error) {
	if err := p.next(); err != nil {
		return 0, err
	}
	text := p.word
	if unit {
		text = bytes.TrimSuffix(text, []byte("b"))
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		return 0, p.from.errorf("%s: %q is not a whole number", what, p.word)
	}
	if n < least || n > most {
		return 0, p.from.errorf("%s: %d is not between %d and %d", what, n, least, most)
	}
	return n, nil
}

func (p *parser) expect(word string) error {
	if err := p.next(); err != nil {
		return err
	}
	if string(p.word) != word {
		return p.unexpected("'" + word + "'")
	}
	return nil
}

func (p *parser) unexpected(wanted string) error {
	if len(p.word) == 0 {
		return p.from.errorf("the text ends where %s should be", wanted)
	}
	return p.from.errorf("%q where %s should be", p.word, wanted)
}

// maxRanks bounds the ranks of a schedule.
const maxRanks = 1 << 24

func (p *parser) parse(ctx context.Context) error {
	if err := p.expect("num_ranks"); err != nil {
		return err
	}
	n, err := p.number("num_ranks", 1, maxRanks, false)
	if err != nil {
		return err
	}
	p.s.ranks = int(n)
	for {
		if err := p.next(); err != nil {
			return err
		}
		if len(p.word) == 0 {
			return nil
		}
		if string(p.word) != "rank" {
			return p.unexpected("'rank'")
		}
		r, err := p.number("rank", 0, n-1, false)
		if err != nil {
			return err
		}
		if before, ok := p.seen[r]; ok {
			return p.from.errorf("rank %d was at %d:%d already", r, before.line, before.col)
		}
		p.seen[r] = p.from
		if err := p.expect("{"); err != nil {
			return err
		}
		if err := p.body(ctx, int32(r)); err != nil {
			return err
		}
	}
}

// promise is an order whose labels may come later.
type promise struct {
	from, to   string
	at, target pos
	start      bool
}

// body reads the operations of a rank up to the closing brace.
func (p *parser) body(ctx context.Context, rank int32) error {
	p.labels = map[string]int{}
	var promises []promise
	for n := 0; ; n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if err := p.next(); err != nil {
			return err
		}
		switch string(p.word) {
		case "":
			return p.unexpected("'}'")
		case "}":
			return p.resolve(promises)
		case "send", "recv", "calc":
			if err := p.operation("", p.from, rank); err != nil {
				return err
			}
			continue
		}
		label, at := string(p.word), p.from
		if !labelLike(label) {
			return p.unexpected("a label, an operation or '}'")
		}
		if err := p.next(); err != nil {
			return err
		}
		switch string(p.word) {
		case ":":
			if _, ok := p.labels[label]; ok {
				return at.errorf("label %s is there twice in rank %d", label, rank)
			}
			p.labels[label] = len(p.s.ops)
			if err := p.next(); err != nil {
				return err
			}
			if err := p.operation(label, at, rank); err != nil {
				return err
			}
		case "requires", "irequires":
			start := string(p.word) == "irequires"
			if err := p.next(); err != nil {
				return err
			}
			promises = append(promises, promise{label, string(p.word), at, p.from, start})
		default:
			return p.unexpected("':', 'requires' or 'irequires'")
		}
	}
}

func labelLike(s string) bool {
	c := s[0]
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_'
}

// resolve turns the labels of a rank's orders into operations.
func (p *parser) resolve(promises []promise) error {
	for _, o := range promises {
		from, ok := p.labels[o.from]
		if !ok {
			return o.at.errorf("label %q is of no operation of its rank", o.from)
		}
		to, ok := p.labels[o.to]
		if !ok {
			return o.target.errorf("label %q is of no operation of its rank", o.to)
		}
		if from == to {
			return o.at.errorf("label %s requires itself", o.from)
		}
		p.s.orders = append(p.s.orders, order{from, to, o.start})
		p.s.ops[to].posted = p.s.ops[to].posted || o.start
	}
	return nil
}

// operation reads an operation whose first word was read.
func (p *parser) operation(label string, at pos, rank int32) error {
	o := op{rank: rank, label: label, at: at}
	word := ""
	switch string(p.word) {
	case "calc":
		n, err := p.number("calc", 0, math.MaxInt64/4, false)
		if err != nil {
			return err
		}
		o.size = uint64(n)
	case "send":
		o.kind, word = opSend, "to"
	case "recv":
		o.kind, word = opRecv, "from"
	default:
		return p.unexpected("send, recv or calc")
	}
	if word != "" {
		n, err := p.number("size", 0, math.MaxInt64/4, true)
		if err != nil {
			return err
		}
		o.size = uint64(n)
		if err := p.expect(word); err != nil {
			return err
		}
		least := int64(0)
		if o.kind == opRecv {
			least = wildcard
		}
		if n, err = p.number("rank", least, int64(p.s.ranks)-1, false); err != nil {
			return err
		}
		o.peer = int32(n)
	}
	for {
		// The options are told from a label by what follows: a number.
		key, ok := p.option()
		if !ok {
			break
		}
		if err := p.next(); err != nil {
			return err
		}
		least, most := int64(0), int64(math.MaxUint16)
		if key == "tag" {
			least, most = wildcard, math.MaxInt64
		}
		n, err := p.number(key, least, most, false)
		if err != nil {
			return err
		}
		switch {
		case key == "tag":
			o.tag = n
		case key == "cpu" && o.kind == opCalc, key == "nic" && o.kind != opCalc:
			o.unit = int32(n)
		}
	}
	p.s.ops = append(p.s.ops, o)
	return nil
}

// option tells whether one of tag, cpu and nic and a number come next.
func (p *parser) option() (string, bool) {
	for n := 64; ; n *= 2 {
		b, err := p.r.Peek(n)
		text := bytes.TrimLeft(b, " \t\r\n")
		for _, key := range []string{"tag", "cpu", "nic"} {
			rest, ok := bytes.CutPrefix(text, []byte(key))
			if !ok {
				continue
			}
			num := bytes.TrimLeft(rest, " \t\r\n")
			if len(num) < len(rest) && len(num) > 0 && (num[0] == '-' || '0' <= num[0] && num[0] <= '9') {
				return key, true
			}
		}
		if err != nil || len(text) >= 32 || n >= 4096 {
			return "", false
		}
	}
}
