package profilelog

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"perfsim/components/zonelog"
	"perfsim/io/format"
)

// Options changes how a log is read. The zero value is right for most uses.
type Options struct {
	Name    string // file name for messages
	Workers int    // parsers; 0 means one for each processor
	Size    int64  // size of the plain text where known, to reserve memory once
	// FreqMHz replaces the clock of every session where it is above 0.
	FreqMHz float64
	// KeepSwapped leaves exchanged time and stat columns as they are, as
	// the vendor's script reads them.
	KeepSwapped bool
	// Sources gives names to zones whose id the log does not resolve.
	Sources *Sources
	// MaxRows bounds the number of rows; 0 means 2^32-2, the limit of a row
	// number.
	MaxRows uint64
	// Progress, if set, is called now and then with the bytes parsed so far.
	Progress func(bytes int64)
}

const (
	blockSize = 1 << 20
	// maxLine bounds one line. The longest real ones are below 1 KiB.
	maxLine = 1 << 20
)

// errTooManyRows stops the pipeline.
var errTooManyRows = errors.New("too many rows")

// ReadFile reads a device log, compressed with gzip or zstd or plain.
func ReadFile(ctx context.Context, path string, opt Options) (*zonelog.DeviceLog, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if opt.Name == "" {
		opt.Name = path
	}
	if st, err := f.Stat(); err == nil && opt.Size == 0 && st.Mode().IsRegular() {
		opt.Size = st.Size()
	}
	return Read(ctx, f, opt)
}

// Unwrap undoes gzip or zstd compression, recognised by the first bytes, and makes
// UTF-8 of UTF-16. plain is true where there was none of them.
func Unwrap(r io.Reader) (out io.Reader, plain bool, closer func(), err error) {
	br := bufio.NewReaderSize(r, 64<<10)
	head, err := br.Peek(4)
	if err != nil && err != io.EOF && len(head) == 0 {
		return nil, false, nil, err
	}
	closer = func() {}
	in := br
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(br)
		if err != nil {
			return nil, false, nil, fmt.Errorf("gzip: %w", err)
		}
		in, closer = bufio.NewReaderSize(z, 64<<10), func() { z.Close() }
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(br, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(256<<20))
		if err != nil {
			return nil, false, nil, fmt.Errorf("zstd: %w", err)
		}
		in, closer = bufio.NewReaderSize(z, 64<<10), z.Close
	}
	text, decoded := format.DecodeText(in)
	return text, in == br && !decoded, closer, nil
}

// Read reads a device log. It fails only where nothing can be used: the
// input cannot be read, is not a device log, or ctx ends. An empty log gives
// a DeviceLog whose diagnostics say so.
func Read(ctx context.Context, r io.Reader, opt Options) (*zonelog.DeviceLog, error) {
	if opt.Name == "" {
		opt.Name = "device log"
	}
	src, plain, closeSrc, err := Unwrap(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", opt.Name, err)
	}
	defer closeSrc()
	if !plain {
		opt.Size = 0
	}
	b := &builder{opt: opt, log: &zonelog.DeviceLog{}, packed: !plain}
	if b.opt.MaxRows == 0 || b.opt.MaxRows > 1<<32-2 {
		b.opt.MaxRows = 1<<32 - 2
	}
	b.init()
	if err := b.stream(ctx, src); err != nil {
		return nil, fmt.Errorf("%s: %w", opt.Name, err)
	}
	if err := b.finish(ctx); err != nil {
		return nil, fmt.Errorf("%s: %w", opt.Name, err)
	}
	return b.log, nil
}

// builder joins chunks in file order.
type builder struct {
	opt  Options
	log  *zonelog.DeviceLog
	lane []uint32 // lane of each row, in file order, until the rows are ordered

	packed bool // the input is compressed

	lay     *layout
	info    info // clock line waiting for its header
	infoAt  uint64
	lines   uint64
	skipped uint64 // lines that are no row so far; line = row + 1 + skipped
	bytes   int64
	own     worker // parses what comes behind a line that is not a row

	laneID map[zonelog.ZoneLane]uint32
	runID  map[zonelog.LogRun]uint32
	keyID  map[zonelog.ZoneKey]uint32
	defID  map[zonelog.ZoneDef]uint32
	metaID map[string]uint32
}

func (b *builder) init() {
	b.laneID = map[zonelog.ZoneLane]uint32{}
	b.runID = map[zonelog.LogRun]uint32{}
	b.keyID = map[zonelog.ZoneKey]uint32{}
	b.defID = map[zonelog.ZoneDef]uint32{}
	b.metaID = map[string]uint32{}
}

// stream runs the pipeline: one reader cuts blocks at line ends, workers
// parse them, and this goroutine joins the results in order.
func (b *builder) stream(ctx context.Context, src io.Reader) error {
	n := b.opt.Workers
	if n <= 0 {
		n = runtime.GOMAXPROCS(0)
	}
	free := make(chan *chunk, 2*n+2)
	for range 2*n + 2 {
		free <- &chunk{}
	}
	work := make(chan *chunk)
	order := make(chan *chunk, 2*n+2)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	var layMu sync.Mutex // guards b.lay for the reader
	current := func() *layout { layMu.Lock(); defer layMu.Unlock(); return b.lay }
	setLayout := func(l *layout) { layMu.Lock(); b.lay = l; layMu.Unlock() }

	br := bufio.NewReaderSize(src, 256<<10)
	if err := b.preamble(br, setLayout); err != nil || b.lay == nil {
		return err
	}

	var readErr error
	var wg sync.WaitGroup
	wg.Go(func() { // reader
		defer close(work)
		defer close(order)
		var carry []byte
		for {
			var c *chunk
			select {
			case c = <-free:
			case <-ctx.Done():
				return
			}
			c.clear()
			c.buf = append(c.buf[:0], carry...)
			carry = carry[:0]
			err := fill(br, c, &carry)
			if err != nil && err != io.EOF {
				readErr = err // what came before it is still parsed
			}
			last := err != nil // c itself is no longer ours once it is handed on
			c.last = last
			if len(c.buf) == 0 && c.tail == 0 {
				if last {
					return
				}
				free <- c
				continue
			}
			c.lay = current()
			c.done = make(chan struct{})
			select {
			case work <- c:
			case <-ctx.Done():
				return
			}
			order <- c // never blocks: as many places as chunks
			if last {
				return
			}
		}
	})
	for range n {
		wg.Go(func() {
			var w worker
			for c := range work {
				w.parse(c)
				close(c.done)
			}
		})
	}
	var err error
	for c := range order {
		<-c.done
		if err == nil {
			if err = ctx.Err(); err == nil {
				err = b.commit(c, setLayout)
			}
			if err != nil {
				cancel()
			}
		}
		if err == nil && b.opt.Progress != nil {
			b.opt.Progress(b.bytes)
		}
		select {
		case free <- c:
		default:
		}
	}
	wg.Wait()
	if err != nil {
		return err
	}
	if readErr != nil {
		return b.broken(readErr)
	}
	return ctx.Err()
}

// broken decides how an input that breaks off is treated. Rows that were
// unpacked before compressed data end or go wrong are as good as any; a file
// that cannot be read is an error.
func (b *builder) broken(err error) error {
	if !b.packed || b.lay == nil {
		return fmt.Errorf("after byte %d: %w", b.bytes, err)
	}
	b.log.Diags.Add(diagBrokenFile, 1, b.lines, fmt.Sprintf("the compressed data break off after %d bytes of text (%v): what follows is missing", b.bytes, err))
	return nil
}

// fill reads into c.buf until it holds a block that ends with a line; what
// is behind the last line end goes to carry. A line above the limit is
// dropped and counted in c.tail.
func fill(br *bufio.Reader, c *chunk, carry *[]byte) error {
	for {
		// Small logs get small buffers.
		if len(c.buf) == cap(c.buf) {
			c.buf = slices.Grow(c.buf, min(max(16<<10, 3*len(c.buf)), blockSize+4096))
		}
		space := c.buf[len(c.buf):cap(c.buf)]
		n, err := br.Read(space)
		c.buf = c.buf[:len(c.buf)+n]
		if err != nil {
			return err
		}
		if len(c.buf) < blockSize {
			continue
		}
		if cut := bytes.LastIndexByte(c.buf, '\n'); cut >= 0 {
			*carry = append(*carry, c.buf[cut+1:]...)
			c.buf = c.buf[:cut+1]
			return nil
		}
		if len(c.buf) < maxLine {
			continue
		}
		// One line fills the whole block: drop it up to its end.
		c.buf = c.buf[:0]
		c.tail++
		for {
			_, err := br.ReadSlice('\n')
			if err == nil {
				return nil
			}
			if err != bufio.ErrBufferFull {
				return err
			}
		}
	}
}

// preamble reads lines up to the first column header.
func (b *builder) preamble(br *bufio.Reader, setLayout func(*layout)) error {
	for {
		line, err := readLine(br)
		if err != nil && err != io.EOF {
			return err
		}
		if len(line) == 0 && err == io.EOF {
			break
		}
		b.lines++
		b.bytes += int64(len(line))
		text := bytes.TrimRight(line, "\r\n")
		switch {
		case len(bytes.TrimSpace(text)) == 0:
		case isInfo(text):
			b.info, b.infoAt = parseInfo(string(text)), b.lines
		case isHeader(text):
			return b.header(text, setLayout)
		default:
			if b.lines > 2 || b.info.seen {
				return fmt.Errorf("line %d: a column header was expected, found %s; rows without a header cannot be read, because several versions have the same number of columns", b.lines, quoteShort(text))
			}
			return fmt.Errorf("line %d: not a device log: neither a clock line nor a column header: %s", b.lines, quoteShort(text))
		}
		if err == io.EOF {
			break
		}
	}
	if b.info.seen {
		b.log.Diags.Add(DiagNoRows, 1, b.lines, "the file ends before the column header")
	} else {
		b.log.Diags.Add(DiagEmptyFile, 1, 0, "the file is empty")
	}
	return nil
}

// readLine returns a line with its end, at most maxLine bytes of it.
func readLine(br *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := br.ReadSlice('\n')
		if len(line)+len(part) <= maxLine {
			line = append(line, part...)
		}
		if err != bufio.ErrBufferFull {
			return line, err
		}
	}
}

// header starts a session.
func (b *builder) header(text []byte, setLayout func(*layout)) error {
	gen := len(b.log.Sessions) + 1
	in := b.info
	if !in.seen && b.lay != nil {
		// A header repeated without a clock line keeps the clock.
		s := b.lay.session
		in = info{seen: s.FreqMHz > 0 || s.Arch != "", arch: s.Arch, freq: s.FreqMHz, maxCores: s.MaxCores, fixed: false}
		if s.Version == "V12" {
			in.maxCores = -1
		}
	}
	l, err := newLayout(string(text), b.lines, in, gen, &b.log.Diags)
	if err != nil {
		return err
	}
	if b.opt.FreqMHz > 0 {
		l.session.FreqMHz = b.opt.FreqMHz
	}
	if gen > 1 {
		b.log.Diags.Add(diagHeaderRepeated, 1, b.lines, "a column header in the middle of the file: a later session was appended")
	}
	l.session.FromRow = uint32(len(b.log.Time))
	b.log.Sessions = append(b.log.Sessions, l.session)
	b.info = info{}
	b.skipped = b.lines - uint64(len(b.log.Time))
	b.log.Skips = append(b.log.Skips, zonelog.LineSkip{Row: uint32(len(b.log.Time)), Add: b.skipped + 1})
	setLayout(l)
	return nil
}

// commit appends the rows of a chunk. A chunk parsed under an older layout
// is parsed again, and a line that is not a row is looked at here.
func (b *builder) commit(c *chunk, setLayout func(*layout)) error {
	buf, tail, last := c.buf, c.tail, c.last
	if c.lay.gen != b.lay.gen {
		b.reparse(c, buf, 0, last)
	}
	at := 0
	for {
		if err := b.appendRows(c); err != nil {
			return err
		}
		if c.stop < 0 {
			break
		}
		at += c.stop
		end := bytes.IndexByte(buf[at:], '\n')
		next := at + end + 1
		if end < 0 {
			end, next = len(buf)-at, len(buf)
		}
		text := bytes.TrimRight(buf[at:at+end], "\r")
		b.lines++
		b.skip()
		switch {
		case isInfo(text):
			b.info, b.infoAt = parseInfo(string(text)), b.lines
		case isHeader(text):
			if err := b.header(text, setLayout); err != nil {
				return err
			}
		default:
			b.log.Diags.Add(diagNotARow, 1, b.lines, quoteShort(text))
		}
		at = next
		if at >= len(buf) {
			break
		}
		b.reparse(c, buf, at, last)
	}
	if tail > 0 {
		b.lines += tail
		b.log.Diags.Add(diagLineTooLong, tail, b.lines, fmt.Sprintf("a line above %d bytes", maxLine))
		b.skip()
	}
	b.bytes += int64(len(buf))
	c.buf = buf
	return nil
}

// skip notes that rows from here on are one more line down.
func (b *builder) skip() {
	b.skipped = b.lines - uint64(len(b.log.Time))
	row := uint32(len(b.log.Time))
	if n := len(b.log.Skips); n > 0 && b.log.Skips[n-1].Row == row {
		b.log.Skips[n-1].Add = b.skipped + 1
		return
	}
	b.log.Skips = append(b.log.Skips, zonelog.LineSkip{Row: row, Add: b.skipped + 1})
}

func (b *builder) reparse(c *chunk, buf []byte, at int, last bool) {
	c.clear()
	c.buf = buf[at:]
	c.lay = b.lay
	c.last = last
	b.own.parse(c)
}

func (b *builder) appendRows(c *chunk) error {
	l := b.log
	if uint64(len(l.Time))+uint64(len(c.time)) > b.opt.MaxRows {
		return fmt.Errorf("line %d: %w: the limit is %d", b.lines, errTooManyRows, b.opt.MaxRows)
	}
	base := uint32(len(l.Time))
	if base == 0 && b.opt.Size > 0 && len(c.time) > 0 {
		b.reserve(c)
	}
	w := c.by
	if c.reset {
		w.mapLane, w.mapRun, w.mapDef = w.mapLane[:0], w.mapRun[:0], w.mapDef[:0]
	}
	for _, v := range c.newLanes {
		w.mapLane = append(w.mapLane, intern(b.laneID, &l.Lanes, v))
	}
	for _, v := range c.newRuns {
		v.Session = uint32(len(l.Sessions) - 1)
		w.mapRun = append(w.mapRun, intern(b.runID, &l.Runs, v))
	}
	for _, v := range c.newDefs {
		w.mapDef = append(w.mapDef, b.def(v, c))
	}
	l.Time = append(l.Time, c.time...)
	l.Def = appendMapped(l.Def, c.def, w.mapDef)
	l.Run = appendMapped(l.Run, c.run, w.mapRun)
	b.lane = appendMapped(b.lane, c.lane, w.mapLane)
	if len(c.data) > 0 || len(l.Data) > 0 {
		if len(l.Data) == 0 {
			l.Data = make([]uint64, base, max(cap(l.Time), len(l.Time)))
		}
		l.Data = append(l.Data, c.data...)
		l.Data = padTo(l.Data, len(l.Time))
	}
	from := uint32(0)
	for i, row := range c.metaRow {
		text := c.metaBuf[from:c.metaEnd[i]]
		from = c.metaEnd[i]
		id, ok := b.metaID[string(text)]
		if !ok {
			id = uint32(len(l.Metas))
			l.Metas = append(l.Metas, string(text))
			b.metaID[l.Metas[id]] = id
		}
		l.MetaRow = append(l.MetaRow, base+row)
		l.MetaText = append(l.MetaText, id)
	}
	l.Diags.Merge(&c.diags, b.lines)
	for _, s := range c.skips {
		l.Skips = appendSkip(l.Skips, base+s.Row, b.skipped+s.Add+1)
	}
	if n := len(c.skips); n > 0 {
		b.skipped += c.skips[n-1].Add
	}
	b.lines += c.lines
	return nil
}

func appendSkip(s []zonelog.LineSkip, row uint32, add uint64) []zonelog.LineSkip {
	if n := len(s); n > 0 && s[n-1].Row == row {
		s[n-1].Add = add
		return s
	}
	return append(s, zonelog.LineSkip{Row: row, Add: add})
}

// reserve sizes the columns from the first chunk, so that they do not grow
// by copying. Memory that is never touched costs nothing.
func (b *builder) reserve(c *chunk) {
	rows := float64(b.opt.Size) / float64(max(len(c.buf), 1)) * float64(len(c.time)) * 1.03
	n := int(min(rows, float64(b.opt.MaxRows), 1<<32)) + 1024
	b.log.Time = make([]uint64, 0, n)
	b.log.Def = make([]uint32, 0, n)
	b.log.Run = make([]uint32, 0, n)
	b.lane = make([]uint32, 0, n)
}

func intern[T comparable](m map[T]uint32, list *[]T, v T) uint32 {
	id, ok := m[v]
	if !ok {
		id = uint32(len(*list))
		*list = append(*list, v)
		m[v] = id
	}
	return id
}

func appendMapped(dst, src, m []uint32) []uint32 {
	n := len(dst)
	if cap(dst)-n < len(src) {
		grown := make([]uint32, n, max(n+len(src), cap(dst)*3/2))
		copy(grown, dst)
		dst = grown
	}
	dst = dst[:n+len(src)]
	out := dst[n:]
	for i, v := range src {
		out[i] = m[v]
	}
	return dst
}

// def shares a kind of marker and its key, and reports what is wrong with
// it, once for each kind.
func (b *builder) def(p protoDef, c *chunk) uint32 {
	line := b.lines + uint64(p.first) + 1
	for _, s := range c.skips {
		if s.Row <= p.first {
			line = b.lines + uint64(p.first) + 1 + s.Add
		}
	}
	if p.odd {
		b.log.Diags.Add(diagBadPhase, 1, line, fmt.Sprintf("phase %q", p.phase))
	}
	if p.key.Name == "" && b.opt.Sources != nil {
		if z, ok := b.opt.Sources.Lookup(p.key.ID & 0xFFFF); ok {
			p.key.Name, p.key.File, p.key.Line = z.Name, z.File, z.Line
			p.noID = false
		}
	}
	if p.noID {
		b.log.Diags.Add(diagNoName, 1, line, fmt.Sprintf("timer id %d", p.timer))
	}
	k := intern(b.keyID, &b.log.Keys, p.key)
	return intern(b.defID, &b.log.Defs, zonelog.ZoneDef{Timer: p.timer, Type: p.typ, Key: k, Phase: p.phase})
}
