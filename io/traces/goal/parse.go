package goal

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"strconv"

	"perfsim/components"
	"perfsim/ecs"
	"perfsim/io/format"
	"perfsim/io/internal/timeline"
)

// parser reads GOAL text.
type parser struct {
	*lexer
	s    *schedule
	src  *format.Source
	seen map[int64]pos // ranks

	// Labels are the symbols of "r<rank>.<label>", so that a name is stored
	// once and ranks do not meet. opOf has the operation of a symbol plus one, 0
	// for a label that none has yet.
	opOf     []uint32
	full     []byte // the prefix and the name looked up last
	prefix   int    // its length
	numbered numbered
	firstSym ecs.Symbol // the first that the rank can have added
	own      []byte     // the label that began the last order or operation
	ownSym   ecs.Symbol
	promises []promise
	reserved bool
}

// promise is an order that names a label before its operation.
type promise struct {
	edge       int // in the builder
	from, to   ecs.Symbol
	at, target pos
}

func newParser(name string, src *format.Source) *parser {
	return &parser{lexer: newLexer(src), src: src, s: newSchedule(name), seen: map[int64]pos{}, numbered: numbered{limit: max(src.Size/4, 1<<20)}}
}

// number reads a whole number; bytes may have the unit b behind them.
func (p *parser) number(what string, least, most int64, unit bool) (int64, error) {
	if err := p.next(); err != nil {
		return 0, err
	}
	n, ok := digits(p.word)
	if !ok {
		text := p.word
		if unit {
			text = bytes.TrimSuffix(text, []byte("b"))
		}
		var err error
		if n, err = strconv.ParseInt(string(text), 10, 64); err != nil {
			return 0, p.from.errorf("%s: %q is not a whole number", what, p.word)
		}
	}
	if n < least || n > most {
		return 0, p.from.errorf("%s: %d is not between %d and %d", what, n, least, most)
	}
	return n, nil
}

// digits returns the number that at most eighteen digits stand for.
func digits(word []byte) (n int64, ok bool) {
	for _, c := range word {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, len(word) > 0 && len(word) <= 18
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

// body reads the operations of a rank up to the closing brace.
func (p *parser) body(ctx context.Context, rank int32) error {
	p.s.starts = append(p.s.starts, rankStart{len(p.s.b.Rows), rank})
	p.full = append(strconv.AppendInt(append(p.full[:0], 'r'), int64(rank), 10), '.')
	p.prefix, p.ownSym = len(p.full), 0
	p.firstSym = ecs.Symbol(p.s.b.M.Symbols.Len())
	for n := 0; ; n++ {
		if n%4096 == 0 {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err := p.reserve(ctx); err != nil {
				return err
			}
		}
		if err := p.next(); err != nil {
			return err
		}
		switch string(p.word) {
		case "":
			return p.unexpected("'}'")
		case "}":
			return p.resolve()
		case "send", "recv", "calc":
			if err := p.operation(0, p.from, rank); err != nil {
				return err
			}
			continue
		}
		if !labelLike(p.word) {
			return p.unexpected("a label, an operation or '}'")
		}
		at, label := p.from, p.label()
		if err := p.next(); err != nil {
			return err
		}
		switch string(p.word) {
		case ":":
			if p.opOf[label] != 0 {
				return at.errorf("label %s is there twice in rank %d", p.name(label), rank)
			}
			p.opOf[label] = uint32(len(p.s.b.Rows)) + 1
			if err := p.next(); err != nil {
				return err
			}
			if err := p.operation(label, at, rank); err != nil {
				return err
			}
		case "requires", "irequires":
			kind := components.Flow
			if p.word[0] == 'i' {
				kind = components.Ordered
			}
			if err := p.next(); err != nil {
				return err
			}
			if err := p.order(promise{from: label, at: at}, kind); err != nil {
				return err
			}
		default:
			return p.unexpected("':', 'requires' or 'irequires'")
		}
	}
}

func labelLike(s []byte) bool {
	c := s[0]
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_'
}

// label returns the symbol of the word as a label of the rank. Orders follow
// their operation, so that the same label comes several times in a row.
func (p *parser) label() ecs.Symbol {
	if p.ownSym == 0 || string(p.own) != string(p.word) {
		p.own = append(p.own[:0], p.word...)
		p.ownSym = p.symbol(p.word)
	}
	return p.ownSym
}

// symbol returns the symbol of a name of the rank.
func (p *parser) symbol(name []byte) ecs.Symbol {
	slot := p.numbered.slot(name)
	if slot != nil && *slot >= p.firstSym {
		return *slot
	}
	p.full = append(p.full[:p.prefix], name...)
	var s ecs.Symbol
	if slot != nil {
		s = p.s.b.M.Symbols.AddUnique(p.full)
		*slot = s
	} else {
		s = p.s.b.M.Symbols.Intern(p.full)
	}
	for int(s) >= len(p.opOf) {
		p.opOf = append(p.opOf, 0)
	}
	return s
}

// name returns a label without the rank.
func (p *parser) name(label ecs.Symbol) []byte { return p.s.b.M.Symbols.Bytes(label)[p.prefix:] }

// order takes an order whose second label was read. Where both have
// operations it is a dependency at once, else it is a promise.
func (p *parser) order(o promise, kind components.EdgeKind) error {
	if len(p.word) == 0 {
		return p.unexpected("a label")
	}
	o.to, o.target = p.symbol(p.word), p.from
	from, to := p.opOf[o.from], p.opOf[o.to]
	if from != 0 && from == to {
		return o.at.errorf("label %s requires itself", p.name(o.from))
	}
	if from == 0 || to == 0 {
		o.edge = p.s.b.Deps.Len()
		p.promises = append(p.promises, o)
	}
	p.s.b.Depend(int(from)-1, int(to)-1, kind)
	return nil
}

// resolve keeps the promises of a rank.
func (p *parser) resolve() error {
	for _, o := range p.promises {
		from, to := p.opOf[o.from], p.opOf[o.to]
		switch {
		case from == 0:
			return o.at.errorf("label %q is of no operation of its rank", p.name(o.from))
		case to == 0:
			return o.target.errorf("label %q is of no operation of its rank", p.name(o.to))
		case from == to:
			return o.at.errorf("label %s requires itself", p.name(o.from))
		}
		p.s.b.Deps.Set(o.edge, int(from)-1, int(to)-1)
	}
	p.promises = p.promises[:0]
	return nil
}

// operation reads an operation whose first word was read.
func (p *parser) operation(label ecs.Symbol, at pos, rank int32) error {
	opcode, word, peer := p.s.calc, "", int32(0)
	switch string(p.word) {
	case "calc":
	case "send":
		opcode, word = components.OpcodeCollectiveSend, "to"
	case "recv":
		opcode, word = components.OpcodeCollectiveRecv, "from"
	default:
		return p.unexpected("send, recv or calc")
	}
	what := "size"
	if word == "" {
		what = "calc"
	}
	size, err := p.number(what, 0, math.MaxInt64/4, word != "")
	if err != nil {
		return err
	}
	if word != "" {
		if err := p.expect(word); err != nil {
			return err
		}
		least := int64(0)
		if opcode == components.OpcodeCollectiveRecv {
			least = wildcard
		}
		n, err := p.number("rank", least, int64(p.s.ranks)-1, false)
		if err != nil {
			return err
		}
		peer = int32(n)
	}
	unit, tag := uint16(0), int64(0)
	for {
		// Options are distinguished from a label by what follows: a number.
		key := p.option()
		if key == "" {
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
			tag = n
		case key == "cpu" && word == "", key == "nic" && word != "":
			unit = uint16(n)
		}
	}
	n := len(p.s.b.Rows)
	r, err := p.s.add(opcode, rank, unit, uint64(size))
	if err != nil {
		return at.errorf("%w", err)
	}
	if r.Name = label; label == 0 {
		r.Name = p.symbol(strconv.AppendInt([]byte("op"), int64(n), 10))
	}
	p.s.at = append(p.s.at, at)
	if word != "" {
		p.s.messages = append(p.s.messages, message{uint32(n), rank, peer, tag})
	}
	return nil
}

// reserve makes room for what the rest of the text is likely to hold, judging
// by the first megabytes: tables that grow step by step are copied several
// times over.
func (p *parser) reserve(ctx context.Context) error {
	const enough = 2 << 20
	read := p.base + int64(p.p)
	if p.reserved || read < enough || p.src.Packed != "" || p.src.Size < read {
		return nil
	}
	p.reserved = true
	part := 1.02 * float64(p.src.Size) / float64(read)
	all := func(n int) int { return int(part * float64(n)) }
	rows, deps := all(len(p.s.b.Rows)), all(p.s.b.Deps.Len())
	if err := timeline.Room(ctx, rows, deps); err != nil {
		return fmt.Errorf(" %w", err)
	}
	p.s.b.Reserve(rows, deps)
	p.s.b.M.Symbols.Reserve(all(p.s.b.M.Symbols.Len()), all(p.s.b.M.Symbols.Size()))
	p.numbered.symbols = append(make([]ecs.Symbol, 0, all(len(p.numbered.symbols))), p.numbered.symbols...)
	p.s.at = append(make([]pos, 0, all(len(p.s.at))), p.s.at...)
	p.opOf = append(make([]uint32, 0, all(len(p.opOf))), p.opOf...)
	return nil
}
