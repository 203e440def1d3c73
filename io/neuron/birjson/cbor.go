package birjson

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"perfsim/components"
	"perfsim/io/internal/jsonscan"
)

// isCBOR reports whether the input is CBOR: its first byte begins a map,
// possibly behind the tag that marks CBOR. No JSON text begins so.
func isCBOR(head []byte) bool {
	if len(head) >= 3 && head[0] == 0xd9 && head[1] == 0xd9 && head[2] == 0xf7 {
		head = head[3:]
	}
	return len(head) > 0 && head[0]>>5 == cborMap
}

// The major types of CBOR (RFC 8949 §3.1).
const (
	cborUint = iota
	cborNegative
	cborBytes
	cborText
	cborArray
	cborMap
	cborTag
	cborSimple
)

// cborReader turns CBOR into JSON text as it is read, so that one splitter
// serves both. It holds a level of nesting in a few bytes and a string in its
// own length; no count that the input claims is believed before its items
// are there.
type cborReader struct {
	in    *bufio.Reader
	off   int64 // bytes taken
	out   []byte
	read  int   // of out
	done  int64 // bytes of text given before out
	stack []cborLevel
	ended bool
	err   error

	// Where maps begin: offset in the text, offset in the input. at() is asked
	// in ascending order, so a queue does.
	marks []cborMark
}

type cborLevel struct {
	left       uint64 // items left; indefinite counts down from the top
	object     bool
	indefinite bool
	value      bool // the next item is a member's value
	started    bool
}

type cborMark struct{ text, input int64 }

// maxMarks bounds the marks kept; far more maps than a window of text holds.
const maxMarks = 1 << 20

func newCBORReader(r io.Reader) *cborReader {
	return &cborReader{in: bufio.NewReaderSize(r, windowSize)}
}

// origin returns the offset in the input of the item whose text begins at off,
// or of the last map before it.
func (c *cborReader) origin(off int64) int64 {
	n := 0
	for n+1 < len(c.marks) && c.marks[n+1].text <= off {
		n++
	}
	c.marks = c.marks[n:]
	if len(c.marks) == 0 || c.marks[0].text > off {
		return 0
	}
	return c.marks[0].input
}

// Read implements io.Reader over the JSON text.
func (c *cborReader) Read(p []byte) (int, error) {
	for c.read == len(c.out) {
		if c.err != nil {
			return 0, c.err
		}
		c.done += int64(len(c.out))
		c.out, c.read = c.out[:0], 0
		for len(c.out) < 64<<10 && c.err == nil {
			c.err = c.item()
		}
	}
	n := copy(p, c.out[c.read:])
	c.read += n
	return n, nil
}

func (c *cborReader) fail(format string, args ...any) error {
	return &jsonscan.Error{At: jsonscan.Place{Off: c.off}, Err: fmt.Errorf(format, args...)}
}

func (c *cborReader) byte() (byte, error) {
	b, err := c.in.ReadByte()
	if err != nil {
		if errors.Is(err, io.EOF) {
			return 0, c.fail("the input ends inside the module")
		}
		return 0, err
	}
	c.off++
	return b, nil
}

// head reads the first bytes of an item.
func (c *cborReader) head() (major byte, info byte, n uint64, err error) {
	b, err := c.byte()
	if err != nil {
		return 0, 0, 0, err
	}
	major, info = b>>5, b&31
	switch {
	case info < 24:
		return major, info, uint64(info), nil
	case info <= 27:
		for range 1 << (info - 24) {
			b, err := c.byte()
			if err != nil {
				return 0, 0, 0, err
			}
			n = n<<8 | uint64(b)
		}
		return major, info, n, nil
	case info == 31:
		return major, info, 0, nil
	}
	return 0, 0, 0, c.fail("malformed CBOR: additional information %d", info)
}

// item turns the next item, or the head of the next map or array, into text.
func (c *cborReader) item() error {
	if c.ended {
		if _, err := c.in.ReadByte(); errors.Is(err, io.EOF) {
			return io.EOF
		} else if err != nil {
			return err
		}
		return c.fail("something follows the module")
	}
	if n := len(c.stack); n > 0 {
		l := &c.stack[n-1]
		if !l.indefinite && l.left == 0 {
			return c.pop()
		}
	}
	at := c.off
	major, info, v, err := c.head()
	if err != nil {
		return err
	}
	if major == cborTag {
		return nil // what the tag says of the item does not matter here
	}
	if major == cborSimple && info == 31 {
		if n := len(c.stack); n == 0 || !c.stack[n-1].indefinite || c.stack[n-1].value {
			return c.fail("malformed CBOR: a break outside of anything indefinite")
		}
		return c.pop()
	}
	if err := c.separate(major); err != nil {
		return err
	}
	if info == 31 && major <= cborNegative {
		return c.fail("malformed CBOR: an indefinite number")
	}
	switch major {
	case cborUint:
		c.out = strconv.AppendUint(c.out, v, 10)
	case cborNegative:
		if v > math.MaxInt64 {
			return c.fail("-1-%d is too small a number", v)
		}
		c.out = strconv.AppendInt(c.out, -1-int64(v), 10)
	case cborBytes, cborText:
		return c.string(major, info == 31, v)
	case cborArray, cborMap:
		if len(c.stack) >= maxNesting {
			return c.fail("nested more than %d levels deep", maxNesting)
		}
		if major == cborMap {
			if len(c.marks) >= maxMarks { // something large is being skipped
				c.marks = append(c.marks[:0], c.marks[maxMarks/2:]...)
			}
			c.marks = append(c.marks, cborMark{c.done + int64(len(c.out)), at})
			c.out = append(c.out, '{')
		} else {
			c.out = append(c.out, '[')
		}
		c.stack = append(c.stack, cborLevel{left: v, object: major == cborMap, indefinite: info == 31})
		return nil
	case cborSimple:
		if err := c.simple(info, v); err != nil {
			return err
		}
	}
	c.after()
	return nil
}

// separate writes what stands before an item and counts it.
func (c *cborReader) separate(major byte) error {
	n := len(c.stack)
	if n == 0 {
		return nil
	}
	l := &c.stack[n-1]
	switch {
	case l.object && l.value:
		c.out = append(c.out, ':')
		l.value = false
		l.left--
		return nil
	case l.object:
		if major != cborText {
			return c.fail("a key that is no text")
		}
		l.value = true
	default:
		l.left--
	}
	if l.started {
		c.out = append(c.out, ',')
	}
	l.started = true
	return nil
}

// after notices the end of the outermost item.
func (c *cborReader) after() {
	if len(c.stack) == 0 {
		c.ended = true
	}
}

func (c *cborReader) pop() error {
	n := len(c.stack) - 1
	if c.stack[n].object {
		c.out = append(c.out, '}')
	} else {
		c.out = append(c.out, ']')
	}
	c.stack = c.stack[:n]
	c.after()
	return nil
}

func (c *cborReader) string(major byte, indefinite bool, n uint64) error {
	if major == cborText && !indefinite && n <= windowSize/2 {
		// The usual case: the whole text is in the buffer or can be.
		b, err := c.in.Peek(int(n))
		if err == nil {
			c.out = appendString(c.out, b)
			c.in.Discard(int(n))
			c.off += int64(n)
			c.after()
			return nil
		}
	}
	var b []byte
	add := func(n uint64) error {
		if n > maxElement || len(b)+int(n) > maxElement {
			return c.fail("a text of %d bytes is longer than %d", n, maxElement)
		}
		for n > 0 { // in pieces, so that a claimed length costs nothing
			k := int(min(n, 64<<10))
			at := len(b)
			b = append(b, make([]byte, k)...)
			got, err := io.ReadFull(c.in, b[at:])
			c.off += int64(got)
			if err != nil {
				if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
					return c.fail("the input ends inside a text")
				}
				return err
			}
			n -= uint64(k)
		}
		return nil
	}
	if !indefinite {
		if err := add(n); err != nil {
			return err
		}
	}
	for indefinite {
		m, info, n, err := c.head()
		if err != nil {
			return err
		}
		if m == cborSimple && info == 31 {
			break
		}
		if m != major || info == 31 {
			return c.fail("malformed CBOR: a piece of a text that is none")
		}
		if err := add(n); err != nil {
			return err
		}
	}
	if major == cborBytes {
		b = hex.AppendEncode(nil, b)
	}
	c.out = appendString(c.out, b)
	c.after()
	return nil
}

func (c *cborReader) simple(info byte, v uint64) error {
	var f float64
	switch info {
	case 20:
		c.out = append(c.out, "false"...)
		return nil
	case 21:
		c.out = append(c.out, "true"...)
		return nil
	case 22, 23:
		c.out = append(c.out, "null"...)
		return nil
	case 25:
		f = components.HalfFloat(uint16(v))
	case 26:
		f = float64(math.Float32frombits(uint32(v)))
	case 27:
		f = math.Float64frombits(v)
	default:
		return c.fail("malformed CBOR: simple value %d", v)
	}
	switch {
	case math.IsNaN(f):
		c.out = append(c.out, `"nan"`...)
	case math.IsInf(f, 1):
		c.out = append(c.out, `"inf"`...)
	case math.IsInf(f, -1):
		c.out = append(c.out, `"-inf"`...)
	default:
		c.out = strconv.AppendFloat(c.out, f, 'g', -1, 64)
	}
	return nil
}
