package birjson

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"perfsim/components"
	"perfsim/ecs"
	"perfsim/io/internal/jsonscan"
)

// blockInfo and functionInfo are the splitter's knowledge of a block and a
// function; their names come behind what they hold.
type blockInfo struct {
	name     string
	function int
	parent   uint32
	first    uint32
	end      uint32
}

type functionInfo struct {
	name       string
	nki        bool
	firstBlock int
	endBlock   int
	firstRow   uint32
	endRow     uint32
	runs       uint64 // given, 0 for not
	attributes string
	origin     string
	at         jsonscan.Place
	blocks     int // so far, for default names
}

// splitter cuts the input into items and sends them to the pipeline.
type splitter struct {
	s    *jsonscan.Scanner
	pipe *pipeline
	cur  *batch

	rows      uint32
	blocks    []blockInfo
	functions []*functionInfo
	fn        int // the function that is open
	loops     int
	version   int64

	top  []rawMember // members of the top level that the module keeps as they are
	ours []byte      // our own member, with a table of lanes
	name string
	// declared counts the dependencies before merging, where it is given.
	declared *[components.NumEdgeKinds]uint64
	queues   []queueInfo
	unread   map[string]int
}

type rawMember struct{ key, value string }

type queueInfo struct {
	name   string
	blocks int // DMABlocks so far: the queue's are [previous queue's, blocks)
}

// document reads the whole input.
func (p *splitter) document() error {
	s := p.s
	if s.Peek() == 0 && s.Ended() {
		if s.Err() != nil {
			return s.Cut("the document")
		}
		return s.Fail("the input is empty")
	}
	if err := s.Members("the module", p.top1); err != nil {
		return err
	}
	if c := s.Peek(); !s.Ended() {
		return s.Fail("something follows the module: %q", c)
	}
	if s.Err() != nil {
		return s.Cut("the document")
	}
	return p.flush()
}

// top1 reads one member of the module.
func (p *splitter) top1(key string) error {
	s := p.s
	switch key {
	case "module": // the wrapper of bir_roundtrip
		if s.Peek() == '{' {
			return s.Members("the module", p.top1)
		}
		return p.raw(key)
	case "functions", "nki_functions":
		return s.Elements(key, func() error { return p.function(key == "nki_functions") })
	case "queues":
		return s.Elements("the queues", p.queue)
	case "version":
		at := s.Here()
		v, err := p.integer("version")
		if err != nil {
			return err
		}
		if v != 1 && v != 2 {
			return &jsonscan.Error{At: at, Err: fmt.Errorf("version %d: check the version of bir json file - should be 1 (old) or 2 (new)", v)}
		}
		p.version = v
		return nil
	case "name":
		raw, err := p.text("name")
		p.name = raw
		return err
	case "perfsim":
		raw, err := s.Value("perfsim")
		p.ours = append([]byte(nil), raw...)
		return err
	default:
		return p.raw(key)
	}
}

// raw keeps a member of the module as it is.
func (p *splitter) raw(key string) error {
	raw, err := p.s.Value(key)
	if err != nil {
		return err
	}
	p.top = append(p.top, rawMember{key, string(raw)})
	return nil
}

func (p *splitter) integer(what string) (int64, error) {
	at := p.s.Here()
	raw, err := p.s.Value(what)
	if err != nil {
		return 0, err
	}
	v, err := parseInt(string(raw))
	if err != nil {
		return 0, &jsonscan.Error{At: at, Err: fmt.Errorf("%s: %w", what, err)}
	}
	return v, nil
}

// text takes a string; anything else gives "".
func (p *splitter) text(what string) (string, error) {
	raw, err := p.s.Value(what)
	if err != nil {
		return "", err
	}
	return unquote(raw), nil
}

// function reads one function.
func (p *splitter) function(nki bool) error {
	s := p.s
	s.Peek()
	f := &functionInfo{nki: nki, firstBlock: len(p.blocks), firstRow: p.rows, at: s.Here()}
	p.functions = append(p.functions, f)
	p.fn = len(p.functions) - 1
	if err := p.event(itemFunction); err != nil {
		return err
	}
	err := s.Members("a function", func(key string) error {
		switch key {
		case "name":
			name, err := p.text("the name of a function")
			f.name = name
			return err
		case "allocations":
			if err := p.pipe.settle(p); err != nil {
				return err
			}
			return s.Elements("the allocations", func() error { return p.plain(itemAlloc, "an allocation") })
		case "blocks":
			if err := p.pipe.settle(p); err != nil {
				return err
			}
			return s.Elements("the blocks of a function", func() error { return p.block(0) })
		case "attributes":
			raw, err := s.Value(key)
			f.attributes = string(raw)
			return err
		case "origin":
			raw, err := s.Value(key)
			f.origin = string(raw)
			return err
		case "perfsim":
			return s.Members("perfsim", func(key string) error {
				if key != "runs" {
					return s.Skip(key)
				}
				v, err := p.integer("runs")
				if err == nil && v > 0 {
					f.runs = uint64(v)
				}
				return err
			})
		default:
			p.unread["key of a function: "+clip(key)]++
			return s.Skip(key)
		}
	})
	if err != nil {
		return err
	}
	f.endBlock = len(p.blocks)
	f.endRow = p.rows
	return p.event(itemEnd)
}

// block reads one basic block of the loop at row parent-1, or of the
// function where parent is 0.
func (p *splitter) block(parent uint32) error {
	s := p.s
	f := p.functions[p.fn]
	f.blocks++
	id := len(p.blocks)
	p.blocks = append(p.blocks, blockInfo{name: fmt.Sprintf("Block%d", f.blocks), function: p.fn, parent: parent, first: p.rows})
	err := s.Members("a block", func(key string) error {
		switch key {
		case "name":
			name, err := p.text("the name of a block")
			if name != "" {
				p.blocks[id].name = name
			}
			return err
		case "instructions":
			return s.Elements("the instructions of a block", func() error { return p.instruction(uint32(id)) })
		default:
			p.unread["key of a block: "+clip(key)]++
			return s.Skip(key)
		}
	})
	p.blocks[id].end = p.rows
	return err
}

// instruction reads one instruction and, where it holds blocks, those.
func (p *splitter) instruction(block uint32) error {
	s := p.s
	if c := s.Peek(); c != '{' {
		if s.Ended() {
			return s.Cut("the instructions of a block")
		}
		return s.Fail("an instruction is an object, not something that starts with %q", c)
	}
	row := p.rows
	at := s.Here()
	if p.rows++; p.rows >= ecs.MaxRows {
		return &jsonscan.Error{At: at, Err: fmt.Errorf("more than %d instructions", ecs.MaxRows-1)}
	}
	it := item{kind: itemInstr, row: row, block: block, fn: p.fn, at: at}
	if w := p.pipe.alone(); w != nil {
		if v, ok := s.Try(&w.tape, "blocks"); ok {
			return p.parsed(w, it, v)
		}
	}
	var head []byte
	var v jsonscan.Walk
	for {
		part, nested, err := s.Part(&v, "blocks", "an instruction")
		if err != nil {
			return err
		}
		if !nested && head == nil {
			return p.add(it, part)
		}
		head = append(head, part...)
		if len(head) > maxElement {
			return &jsonscan.Error{At: at, Err: fmt.Errorf("an instruction is longer than %d bytes", maxElement)}
		}
		if !nested {
			return p.add(it, head)
		}
		if s.Peek() != '[' {
			continue
		}
		if p.loops++; p.loops > maxLoops {
			return s.Fail("loops are nested more than %d levels deep", maxLoops)
		}
		it.holds = true
		if err := s.Elements("the blocks of a loop", func() error { return p.block(row + 1) }); err != nil {
			return err
		}
		p.loops--
		head = append(head, "null"...)
	}
}

// plain reads an element that is parsed whole.
func (p *splitter) plain(kind itemKind, what string) error {
	p.s.Peek()
	at := p.s.Here()
	raw, err := p.s.Value(what)
	if err != nil {
		return err
	}
	return p.add(item{kind: kind, fn: p.fn, at: at}, raw)
}

// queue reads one DMA queue with its blocks.
func (p *splitter) queue() error {
	s := p.s
	var q queueInfo
	n := 0
	if len(p.queues) > 0 {
		n = p.queues[len(p.queues)-1].blocks
	}
	err := s.Members("a queue", func(key string) error {
		switch key {
		case "name":
			name, err := p.text("the name of a queue")
			q.name = name
			return err
		case "blocks":
			return s.Elements("the blocks of a queue", func() error {
				return s.Members("a block of a queue", func(key string) error {
					if key != "instructions" {
						return s.Skip(key)
					}
					return s.Elements("the DMA blocks of a queue", func() error {
						n++
						return p.plain(itemDMABlock, "a DMA block")
					})
				})
			})
		default:
			return s.Skip(key)
		}
	})
	q.blocks = n
	p.queues = append(p.queues, q)
	return err
}

// event adds an item without text.
func (p *splitter) event(kind itemKind) error { return p.add(item{kind: kind, fn: p.fn}, nil) }

// add puts an item into the current batch and sends the batch where it is full.
func (p *splitter) add(it item, text []byte) error {
	if p.cur == nil {
		p.cur = p.pipe.fresh()
	}
	b := p.cur
	b.size += len(text)
	if w := p.pipe.alone(); w != nil {
		b.items = append(b.items, it)
		w.b = b
		return p.next(w.done(len(b.items)-1, w.item(&it, text)))
	}
	it.lo = len(b.text)
	b.text = append(b.text, text...)
	it.hi = len(b.text)
	b.items = append(b.items, it)
	return p.next(true)
}

// parsed is add for an item that w takes from a value.
func (p *splitter) parsed(w *worker, it item, v jsonscan.Value) error {
	if !utf8.Valid(v.Text()) {
		return p.add(it, v.Text())
	}
	if p.cur == nil {
		p.cur = p.pipe.fresh()
	}
	b := p.cur
	b.size += len(v.Text())
	b.items = append(b.items, it)
	w.b = b
	return p.next(w.done(len(b.items)-1, w.value(&it, v)))
}

// next sends the current batch where it is full, or ends with an error.
func (p *splitter) next(ok bool) error {
	if !ok || p.cur.full() {
		return p.flush()
	}
	return nil
}

// flush sends the current batch.
func (p *splitter) flush() error {
	if p.cur == nil {
		return nil
	}
	b := p.cur
	p.cur = nil
	return p.pipe.send(b)
}

// errStopped stops the splitter after merging failed; the merge has the error.
var errStopped = errors.New("stopped")

// clip bounds a name taken from the input for messages.
func clip(s string) string {
	if len(s) > 40 {
		return s[:40] + "…"
	}
	return s
}
