// Package journal keeps a record that survives a kill at any moment: lines that
// are appended to a file and flushed to the disk before they count.
package journal

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"perfsim/io/fault"
	"perfsim/io/internal/lock"
)

// mostLine bounds a line that is read, in bytes.
const mostLine = 16 << 20

// Journal is an open file that this process alone appends to.
type Journal struct {
	f    *os.File
	path string
	buf  []byte
}

// Open opens or creates the file at path, locks it, and calls each with every
// line that was kept. A last line that a kill cut is dropped from the file. An
// error of each names the line.
func Open(path string, each func(line []byte) error) (*Journal, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	if err := lock.File(f, path); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s is in use by another process (%w)", path, err)
	}
	j := &Journal{f: f, path: path}
	end, err := j.read(each)
	if err == nil {
		err = f.Truncate(end)
	}
	if err == nil {
		_, err = f.Seek(end, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return j, nil
}

// read calls each with every whole line and returns where the last one ends.
func (j *Journal) read(each func(line []byte) error) (end int64, err error) {
	in := bufio.NewReaderSize(j.f, 1<<20)
	var line []byte
	for n := 1; ; n++ {
		line = line[:0]
		for {
			part, err := in.ReadSlice('\n')
			line = append(line, part...)
			if err == nil {
				break
			}
			if errors.Is(err, io.EOF) {
				return end, nil // what no newline ends was cut
			}
			if !errors.Is(err, bufio.ErrBufferFull) {
				return end, fmt.Errorf("read %s: %w", j.path, err)
			}
			if len(line) > mostLine {
				return end, fmt.Errorf("%s:%d: a line of more than %d bytes: not a journal", j.path, n, mostLine)
			}
		}
		if err := each(bytes.TrimSuffix(line, []byte{'\n'})); err != nil {
			return end, fmt.Errorf("%s:%d: %w", j.path, n, err)
		}
		end += int64(len(line))
	}
}

// Append adds a line, which holds no newline; Sync makes it last.
func (j *Journal) Append(line []byte) {
	j.buf = append(append(j.buf, line...), '\n')
}

// Sync writes the lines added and flushes them to the disk.
func (j *Journal) Sync() error {
	if len(j.buf) == 0 {
		return nil
	}
	_, err := fault.Writer(j.f, j.path).Write(j.buf)
	j.buf = j.buf[:0]
	if err == nil {
		err = fault.At("sync", j.path)
	}
	if err == nil {
		err = j.f.Sync()
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", j.path, err)
	}
	return nil
}

// Close syncs and closes the file.
func (j *Journal) Close() error {
	err := j.Sync()
	if cerr := j.f.Close(); err == nil {
		err = cerr
	}
	return err
}
