package dprint

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
)

// Key names a processor.
type Key struct {
	Device int
	X, Y   int
	Risc   int // 0 BRISC, 1 NCRISC, 2..4 TRISC 0..2 (unpack, math, pack), 5 ERISC
	// Name replaces the name of a processor that is none of these.
	Name string
}

// riscNames are the short names in line prefixes.
var riscNames = [...]string{"BR", "NC", "TR0", "TR1", "TR2", "ER"}

// fileNames are the names in file names.
var fileNames = [...]string{"BRISC", "NCRISC", "TRISC0", "TRISC1", "TRISC2", "ERISC"}

func (k Key) riscName(names []string) string {
	if k.Name != "" {
		return k.Name
	}
	if k.Risc >= 0 && k.Risc < len(names) {
		return names[k.Risc]
	}
	return fmt.Sprintf("RISC%d", k.Risc)
}

// Prefix is the documented start of a line: device, core, processor.
func (k Key) Prefix() string {
	return fmt.Sprintf("%d:(%d, %d):%s: ", k.Device, k.X, k.Y, k.riscName(riscNames[:]))
}

// FileName is the name of the file of one processor.
func (k Key) FileName() string {
	return fmt.Sprintf("device-%d_worker-core-%d-%d_%s.txt", k.Device, k.X, k.Y, k.riscName(fileNames[:]))
}

// Problem is a place of a print buffer that does not decode.
type Problem struct {
	Key    Key
	Offset int // in the data of the buffer
	Reason string
}

// Options of a server.
type Options struct {
	Dialect Dialect
	Out     io.Writer
	// Shared prints records as they come into one stream whose settings all
	// processors share, as the server of 2024 did. Otherwise each processor
	// has its own stream and a line leaves when it ends.
	Shared bool
	Prefix bool
	// File gives a processor its own sink (one file a processor); nil means
	// Out. The sink is not closed.
	File func(Key) io.Writer
	// Hold is how many polls without progress on any processor end the wait
	// for a signal; 0 means 2.
	Hold int
}

// Server is the host side.
type Server struct {
	o    Options
	keys []Key
	ch   map[Key]*channel

	shared  stream
	raised  map[uint32]bool
	idle    int
	killed  bool
	Problem []Problem
}

type channel struct {
	key     Key
	buf     *Buffer
	s       stream
	prev    Type
	setw    int
	waiting bool
	signal  uint32
	out     io.Writer
}

// errHang says that the server stopped because a processor waits for a
// signal that nobody raises.
var errHang = errors.New("print server stopped: a processor waits for a signal that is not raised")

// NewServer returns a server without processors.
func NewServer(o Options) *Server {
	if o.Hold <= 0 {
		o.Hold = 2
	}
	return &Server{o: o, ch: map[Key]*channel{}, raised: map[uint32]bool{}, shared: newStream()}
}

// Attach adds a processor and enables its printing. Processors are polled in
// the order of device, core and number.
func (s *Server) Attach(k Key, b *Buffer) {
	c := &channel{key: k, buf: b, s: newStream(), out: s.o.Out}
	if s.o.File != nil {
		c.out = s.o.File(k)
	}
	if s.ch[k] == nil {
		s.keys = append(s.keys, k)
		slices.SortFunc(s.keys, func(a, b Key) int {
			for _, d := range []int{a.Device - b.Device, a.Y - b.Y, a.X - b.X, a.Risc - b.Risc} {
				if d != 0 {
					return d
				}
			}
			return 0
		})
	}
	s.ch[k] = c
	if b != nil {
		b.Enable(true)
	}
}

// Poll looks at every processor once and prints what is there. progress reports
// whether something was read. After too many polls without progress while a
// processor waits for a signal, it prints which one and returns ErrHang, for
// good.
func (s *Server) Poll() (progress bool, err error) {
	if s.killed {
		return false, errHang
	}
	var stuck *channel
	for _, k := range s.keys {
		c := s.ch[k]
		if c.waiting {
			if !s.raised[c.signal] {
				if stuck == nil {
					stuck = c
				}
				continue
			}
			c.waiting = false
			progress = true
		}
		read, err := s.peek(c)
		if err != nil {
			return progress, err
		}
		progress = progress || read
	}
	if progress {
		s.idle = 0
	} else if stuck != nil {
		if s.idle++; s.idle >= s.o.Hold {
			s.killed = true
			k := stuck.key
			msg := fmt.Sprintf("DPRINT server timed out on core (%d,%d) riscv %d, waiting on a RAISE signal: %d\n", k.X, k.Y, k.Risc, stuck.signal)
			if _, err := io.WriteString(stuck.out, msg); err != nil {
				return false, err
			}
			return false, errHang
		}
	}
	return progress, nil
}

// Drain polls until nothing moves.
func (s *Server) Drain() error {
	for {
		more, err := s.Poll()
		if err != nil {
			return err
		}
		if !more && !s.anyWaiting() {
			return nil
		}
	}
}

func (s *Server) anyWaiting() bool {
	for _, c := range s.ch {
		if c.waiting {
			return true
		}
	}
	return false
}

// Close prints lines that have not ended and disables the buffers, so that
// no device waits any longer.
func (s *Server) Close() error {
	var first error
	for _, k := range s.keys {
		c := s.ch[k]
		if c.buf != nil {
			c.buf.Enable(false)
		}
		if len(c.s.buf) > 0 {
			if err := s.line(c); err != nil && first == nil {
				first = err
			}
		}
	}
	return first
}

// peek reads the buffer of one processor.
func (s *Server) peek(c *channel) (bool, error) {
	b := c.buf
	w, r := b.positions()
	if b.get(0) == b.d.Start || b.get(0) == b.d.Disabled || r >= w {
		return false, nil
	}
	if w > dataBytes {
		s.problem(c, 0, "write position %d is behind the buffer", w)
		return false, nil
	}
	data := append([]byte(nil), b.mem[headBytes:headBytes+w]...)
	n, err := s.records(c, data[:w], r)
	// The device may have written more, but never below the read position.
	if b.get(0) != b.d.Disabled {
		b.put(4, uint32(n))
	}
	return true, err
}

func (s *Server) problem(c *channel, at int, format string, args ...any) {
	const limit = 1000
	if len(s.Problem) < limit {
		s.Problem = append(s.Problem, Problem{c.key, at, fmt.Sprintf(format, args...)})
	}
}

// records prints the records of data from at on and returns the place where
// reading stopped: the end, or behind a WAIT.
func (s *Server) records(c *channel, data []byte, at int) (int, error) {
	for at < len(data) {
		if at+2 > len(data) {
			s.problem(c, at, "half a record")
			return len(data), s.flushShared(c)
		}
		t, ok := s.o.Dialect.TypeOf(data[at])
		size := int(data[at+1])
		payload := data[at+2:]
		if size > len(payload) {
			s.problem(c, at, "%s record of %d bytes, %d are there", t, size, len(payload))
			return len(data), s.flushShared(c)
		}
		payload = payload[:size]
		if !ok {
			s.problem(c, at, "unexpected type code %d", data[at])
			at += 2 + size
			continue
		}
		if want := fixedSize[t]; want != 0 && want != size {
			s.problem(c, at, "%s record of %d bytes, not %d", t, size, want)
			at += 2 + size
			continue
		}
		at += 2 + size
		if err := s.record(c, t, payload, at-2-size); err != nil {
			return at, err
		}
		if c.waiting {
			return at, s.flushShared(c)
		}
	}
	return at, s.flushShared(c)
}

func (s *Server) stream(c *channel) *stream {
	if s.o.Shared {
		return &s.shared
	}
	return &c.s
}

func (s *Server) record(c *channel, t Type, b []byte, at int) error {
	f := s.stream(c)
	le := binary.LittleEndian
	var err error
	switch t {
	case CStr:
		n := bytes.IndexByte(b, 0)
		if n < 0 {
			f.text("STRING BUFFER OVERFLOW DETECTED\n")
			s.problem(c, at, "a text without its end")
			err = s.lines(c)
			break
		}
		if n != len(b)-1 {
			s.problem(c, at, "a text of %d bytes in a record of %d", n, len(b))
		}
		f.text(string(b[:n]))
		err = s.lines(c)
	case Endl:
		if t := c.prev; t != TileSlice || s.o.Shared || len(f.buf) == 0 || f.buf[len(f.buf)-1] != '\n' {
			f.buf = append(f.buf, '\n')
		}
		err = s.lines(c)
	case SetW:
		f.width, c.setw = int(b[0]), int(b[0])
	case SetPrecision:
		f.prec = int(b[0])
	case Fixed:
		f.fixed = true
	case DefaultFloat:
		f.fixed = false
	case Hex:
		f.base = 16
	case Oct:
		f.base = 8
	case Dec:
		f.base = 10
	case Uint8, Char:
		f.text(string(b)) // a byte prints as a character
	case Uint16:
		f.uint(uint64(le.Uint16(b)), 16)
	case Uint32:
		f.uint(uint64(le.Uint32(b)), 32)
	case Uint64:
		f.uint(le.Uint64(b), 64)
	case Int8:
		f.int(int64(int8(b[0])), 32)
	case Int16:
		f.int(int64(int16(le.Uint16(b))), 16)
	case Int32:
		f.int(int64(int32(le.Uint32(b))), 32)
	case Int64:
		f.int(int64(le.Uint64(b)), 64)
	case Float32:
		f.float(math.Float32frombits(le.Uint32(b)))
	case BFloat16:
		f.float(bf16(le.Uint16(b)))
	case Raise:
		s.raised[le.Uint32(b)] = true
	case Wait:
		if code := le.Uint32(b); !s.raised[code] {
			c.waiting, c.signal = true, code
		}
	case TileSlice:
		var terr error
		if s.o.Dialect.OldTiles {
			terr = f.printOldTile(b, c.key.Risc)
		} else {
			terr = f.printTile(b)
		}
		if terr != nil {
			s.problem(c, at, "%v", terr)
		}
	case U32Array, TypedU32Array:
		if aerr := f.typedArray(b, t == U32Array, c.setw); aerr != nil {
			s.problem(c, at, "%v", aerr)
		}
	}
	c.prev = t
	return err
}

// lines sends out the lines that have ended.
func (s *Server) lines(c *channel) error {
	if s.o.Shared {
		return nil // sent out at the end of the poll
	}
	for {
		i := bytes.IndexByte(c.s.buf, '\n')
		if i < 0 {
			return nil
		}
		rest := append([]byte(nil), c.s.buf[i+1:]...)
		c.s.buf = c.s.buf[:i+1]
		if err := s.line(c); err != nil {
			return err
		}
		c.s.buf = append(c.s.buf, rest...)
	}
}

// line sends out what the stream of a processor holds.
func (s *Server) line(c *channel) error {
	defer func() { c.s.buf = c.s.buf[:0] }()
	if s.o.Prefix {
		if _, err := io.WriteString(c.out, c.key.Prefix()); err != nil {
			return err
		}
	}
	_, err := c.out.Write(c.s.buf)
	return err
}

// flushShared sends out the common stream.
func (s *Server) flushShared(c *channel) error {
	if !s.o.Shared || len(s.shared.buf) == 0 {
		return nil
	}
	defer func() { s.shared.buf = s.shared.buf[:0] }()
	_, err := c.out.Write(s.shared.buf)
	return err
}

// DecodeDump prints dumped buffers, 204 bytes each, processor by processor.
// key names the buffer with a number. Buffers that were never enabled are
// passed over. It returns what does not decode.
func DecodeDump(dump []byte, o Options, key func(i int, x, y int) Key) ([]Problem, error) {
	if len(dump)%BufferBytes != 0 {
		return nil, fmt.Errorf("print dump of %d bytes: not a multiple of the %d bytes of a buffer", len(dump), BufferBytes)
	}
	s := NewServer(o)
	le := binary.LittleEndian
	// All buffers are attached first, so that a WAIT finds its RAISE in any
	// of them.
	for i := range len(dump) / BufferBytes {
		mem := dump[i*BufferBytes : (i+1)*BufferBytes]
		w, r := le.Uint32(mem), le.Uint32(mem[4:])
		k := key(i, int(le.Uint16(mem[8:])), int(le.Uint16(mem[10:])))
		if w == o.Dialect.Disabled || w == o.Dialect.Start {
			continue
		}
		if s.ch[k] != nil {
			return nil, fmt.Errorf("print dump: buffer %d is a second one of %s", i, k.Prefix())
		}
		b := &Buffer{d: o.Dialect}
		s.Attach(k, nil)
		c := s.ch[k]
		c.buf = b
		copy(b.mem[:], mem)
		if w > dataBytes || r > w {
			s.problem(c, 0, "write position %d, read position %d", w, r)
			b.put(0, 0)
			b.put(4, 0)
			continue
		}
		b.put(4, 0) // what was read already is printed again
	}
	if err := s.Drain(); err != nil && !errors.Is(err, errHang) {
		return s.Problem, err
	}
	if err := s.Close(); err != nil {
		return s.Problem, err
	}
	return s.Problem, nil
}
