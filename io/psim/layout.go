package psim

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"

	"perfsim/components"
	"perfsim/ecs"
)

// The fixed numbers of the format; docs/snapshot.md draws them.
const (
	// magic starts every snapshot. The first byte is not text, the line ends
	// in it show a transfer that changed them.
	magic = "\x89PSIM\r\n\x1a"
	// version is raised when an old reader could misread a new file: a column
	// changed its meaning or element type, or the layout changed. A new column
	// does not raise it.
	version = 1

	preambleSize = 64
	recordSize   = 64
	nameSize     = 40 // of a column, in its record

	// chunkSize is the share of a column that has a checksum of its own.
	chunkSize = 1 << 20
	// pageSize aligns columns of a page or more, cacheLine the small ones.
	pageSize  = 4096
	cacheLine = 64

	// maxColumns, maxDirectory bound what a hostile preamble can ask for. A
	// directory has 64 bytes a column and 4 a MiB, so 256 MiB are 60 TB.
	maxColumns   = 4096
	maxDirectory = 256 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// preamble is the first 64 bytes.
type preamble struct {
	columns   uint32
	fileSize  uint64
	dirSize   uint64
	rows      uint64 // instructions, for people and other tools
	dirSum    uint32
	dataStart uint64 // computed: behind the directory, aligned
}

func (p *preamble) append(b []byte) []byte {
	at := len(b)
	b = append(b, magic...)
	b = binary.LittleEndian.AppendUint32(b, version)
	b = binary.LittleEndian.AppendUint32(b, p.columns)
	b = binary.LittleEndian.AppendUint64(b, p.fileSize)
	b = binary.LittleEndian.AppendUint64(b, preambleSize)
	b = binary.LittleEndian.AppendUint64(b, p.dirSize)
	b = binary.LittleEndian.AppendUint64(b, p.rows)
	b = binary.LittleEndian.AppendUint32(b, chunkSize)
	b = binary.LittleEndian.AppendUint32(b, p.dirSum)
	b = binary.LittleEndian.AppendUint32(b, 0)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[at:], castagnoli))
}

// readPreamble checks and takes apart the first bytes of a snapshot.
func readPreamble(b []byte) (preamble, error) {
	var p preamble
	if len(b) < preambleSize {
		return p, fmt.Errorf("snapshot is cut short: %d bytes, the preamble alone has %d", len(b), preambleSize)
	}
	if !sniff(b) {
		return p, errors.New("not a snapshot: it does not start with the magic bytes")
	}
	le := binary.LittleEndian
	// The version comes before the checksum: a later version may have moved it.
	if v := le.Uint32(b[8:]); v != version {
		return p, fmt.Errorf("snapshot version %d; this program reads version %d", v, version)
	}
	if got, want := crc32.Checksum(b[:preambleSize-4], castagnoli), le.Uint32(b[preambleSize-4:]); got != want {
		return p, fmt.Errorf("snapshot is damaged: preamble (bytes 0 to %d) has checksum %08x, not %08x", preambleSize, got, want)
	}
	p = preamble{columns: le.Uint32(b[12:]), fileSize: le.Uint64(b[16:]), dirSize: le.Uint64(b[32:]), rows: le.Uint64(b[40:]), dirSum: le.Uint32(b[52:])}
	switch {
	case le.Uint64(b[24:]) != preambleSize || le.Uint32(b[48:]) != chunkSize:
		return p, errors.New("snapshot is damaged: preamble has a directory or chunk size of another version")
	case p.columns > maxColumns || p.dirSize > maxDirectory || p.dirSize < uint64(p.columns)*recordSize:
		return p, fmt.Errorf("snapshot is damaged: preamble claims %d columns and a directory of %d bytes", p.columns, p.dirSize)
	case p.fileSize < preambleSize+p.dirSize || p.fileSize > 1<<62:
		return p, fmt.Errorf("snapshot is damaged: preamble claims a size of %d bytes, less than its directory", p.fileSize)
	}
	p.dataStart = align(preambleSize+p.dirSize, pageSize)
	return p, nil
}

// sniff reports whether an input is a snapshot of any version.
func sniff(head []byte) bool {
	return strings.HasPrefix(string(head[:min(len(head), len(magic))]), magic)
}

// Column is one column of a snapshot.
type Column struct {
	Name     string
	ElemSize int
	Offset   int64 // in the file
	Bytes    int64
	sums     []uint32 // CRC-32C of every chunkSize bytes
}

// Rows returns the number of rows.
func (c *Column) Rows() int64 { return c.Bytes / int64(c.ElemSize) }

func chunks(bytes uint64) uint64 { return (bytes + chunkSize - 1) / chunkSize }

// align rounds n up to a multiple of to.
func align(n, to uint64) uint64 { return (n + to - 1) / to * to }

// place returns where a column of the given size lies when the one before it
// ends at end.
func place(end, bytes uint64) uint64 {
	if bytes >= pageSize {
		return align(end, pageSize)
	}
	return align(end, cacheLine)
}

// appendDirectory appends the records, the checksums and the header.
func appendDirectory(b []byte, cols []Column, h *header) []byte {
	le := binary.LittleEndian
	for _, c := range cols {
		var name [nameSize]byte
		copy(name[:], c.Name)
		b = append(b, name[:]...)
		b = le.AppendUint64(b, uint64(c.Offset))
		b = le.AppendUint64(b, uint64(c.Bytes))
		b = le.AppendUint32(b, uint32(c.ElemSize))
		b = le.AppendUint32(b, uint32(len(c.sums)))
	}
	for _, c := range cols {
		for _, s := range c.sums {
			b = le.AppendUint32(b, s)
		}
	}
	return h.append(b)
}

// readDirectory checks and takes apart the directory.
func readDirectory(p preamble, b []byte) ([]Column, *header, error) {
	if got := crc32.Checksum(b, castagnoli); got != p.dirSum {
		return nil, nil, fmt.Errorf("snapshot is damaged: directory (bytes %d to %d) has checksum %08x, not %08x", preambleSize, preambleSize+len(b), got, p.dirSum)
	}
	le := binary.LittleEndian
	cols := make([]Column, p.columns)
	seen := make(map[string]bool, p.columns)
	end, total := p.dataStart, uint64(0)
	for i := range cols {
		r := b[i*recordSize:][:recordSize]
		name := strings.TrimRight(string(r[:nameSize]), "\x00")
		c := Column{Name: name, Offset: int64(le.Uint64(r[40:])), Bytes: int64(le.Uint64(r[48:])), ElemSize: int(le.Uint32(r[56:]))}
		off, size := le.Uint64(r[40:]), le.Uint64(r[48:])
		n := uint64(le.Uint32(r[60:]))
		switch {
		case name == "" || seen[name]:
			return nil, nil, fmt.Errorf("snapshot is damaged: column %d has the name %q of none or another", i, name)
		case size == 0 || size > p.fileSize || off > p.fileSize-size || off != place(end, size):
			return nil, nil, fmt.Errorf("snapshot is damaged: column %s has bytes %d to %d, behind %d in a file of %d", name, off, off+size, end, p.fileSize)
		case c.ElemSize == 0 || c.ElemSize > 16 || size%uint64(c.ElemSize) != 0:
			return nil, nil, fmt.Errorf("snapshot is damaged: column %s has %d bytes in rows of %d", name, size, c.ElemSize)
		case n != chunks(size):
			return nil, nil, fmt.Errorf("snapshot is damaged: column %s has %d checksums for %d bytes", name, n, size)
		}
		seen[name] = true
		end = off + size
		total += n
		cols[i] = c
	}
	if end != p.fileSize {
		return nil, nil, fmt.Errorf("snapshot is damaged: the columns end at byte %d of %d", end, p.fileSize)
	}
	b = b[len(cols)*recordSize:]
	if total*4 > uint64(len(b)) {
		return nil, nil, errors.New("snapshot is damaged: the directory has no room for its checksums")
	}
	for i := range cols {
		cols[i].sums = make([]uint32, chunks(uint64(cols[i].Bytes)))
		for k := range cols[i].sums {
			cols[i].sums[k] = le.Uint32(b)
			b = b[4:]
		}
	}
	h, err := readHeader(b)
	return cols, h, err
}

// header has the parts of a module that are no columns.
type header struct {
	name, format, arch string
	attributes         []components.Attribute
	opcodes            []string
	declared           []uint64
	notes              []components.Note
}

func headerOf(m *components.Module) *header {
	return &header{name: m.Name, format: m.Format, arch: m.Arch, attributes: m.Attributes, opcodes: m.Opcodes,
		declared: m.Edges.Declared[:], notes: m.Notes}
}

// fill copies the header into the module.
func (h *header) fill(m *components.Module) error {
	m.Name, m.Format, m.Arch = h.name, h.format, h.arch
	m.Attributes, m.Opcodes, m.Notes = h.attributes, h.opcodes, h.notes
	if len(h.declared) != len(m.Edges.Declared) {
		return fmt.Errorf("snapshot is damaged: %d edge kinds are counted, not %d", len(h.declared), len(m.Edges.Declared))
	}
	if len(h.opcodes) > 1<<16-int(components.NumOpcodes) {
		return fmt.Errorf("snapshot is damaged: %d opcodes of its own", len(h.opcodes))
	}
	copy(m.Edges.Declared[:], h.declared)
	return nil
}

func (h *header) append(b []byte) []byte {
	le := binary.LittleEndian
	text := func(s string) {
		b = le.AppendUint32(b, uint32(len(s)))
		b = append(b, s...)
	}
	text(h.name)
	text(h.format)
	text(h.arch)
	b = le.AppendUint32(b, uint32(len(h.attributes)))
	for _, a := range h.attributes {
		text(a.Key)
		text(a.Value)
	}
	b = le.AppendUint32(b, uint32(len(h.opcodes)))
	for _, o := range h.opcodes {
		text(o)
	}
	b = le.AppendUint32(b, uint32(len(h.declared)))
	for _, n := range h.declared {
		b = le.AppendUint64(b, n)
	}
	b = le.AppendUint32(b, uint32(len(h.notes)))
	for _, n := range h.notes {
		text(n.Code)
		text(n.Text)
		b = le.AppendUint64(b, uint64(n.Count))
	}
	return b
}

// cutter takes values off the front of bytes; the first that is not there
// sets bad, and all later ones are zero.
type cutter struct {
	b   []byte
	bad bool
}

func (c *cutter) take(n int) []byte {
	if c.bad || n > len(c.b) {
		c.bad = true
		return nil
	}
	v := c.b[:n]
	c.b = c.b[n:]
	return v
}

func (c *cutter) u64() uint64 {
	if v := c.take(8); v != nil {
		return binary.LittleEndian.Uint64(v)
	}
	return 0
}

func (c *cutter) u32() uint32 {
	if v := c.take(4); v != nil {
		return binary.LittleEndian.Uint32(v)
	}
	return 0
}

func (c *cutter) text() string { return string(c.take(int(c.u32()))) }

// count takes the length of a list whose items take at least size bytes, so
// that a lie about it cannot ask for memory.
func (c *cutter) count(size int) int {
	n := int(c.u32())
	if n > len(c.b)/size {
		c.bad = true
		return 0
	}
	return n
}

func readHeader(b []byte) (*header, error) {
	c := &cutter{b: b}
	h := &header{name: c.text(), format: c.text(), arch: c.text()}
	if n := c.count(8); n > 0 {
		h.attributes = make([]components.Attribute, n)
	}
	for i := range h.attributes {
		h.attributes[i] = components.Attribute{Key: c.text(), Value: c.text()}
	}
	if n := c.count(4); n > 0 {
		h.opcodes = make([]string, n)
	}
	for i := range h.opcodes {
		h.opcodes[i] = c.text()
	}
	h.declared = make([]uint64, c.count(8))
	for i := range h.declared {
		h.declared[i] = c.u64()
	}
	if n := c.count(16); n > 0 {
		h.notes = make([]components.Note, n)
	}
	for i := range h.notes {
		h.notes[i] = components.Note{Code: c.text(), Text: c.text(), Count: int(c.u64())}
	}
	if c.bad || len(c.b) > 0 {
		return nil, errors.New("snapshot is damaged: the header does not fill its place in the directory")
	}
	return h, nil
}

// present returns the columns that have rows, in the module's order.
func present(m *components.Module) []ecs.AnyColumn {
	var out []ecs.AnyColumn
	for _, c := range m.Columns() {
		if c.Len() > 0 {
			out = append(out, c)
		}
	}
	return out
}
