package tarball

import (
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/klauspost/pgzip"
)

// defaultLevel is the compression level that the documented writers ask for
// (libarchive's gzip filter with compression-level 1).
const defaultLevel = 1

// gzipBlock is the unit of parallel compression. The compressed bytes depend
// on it, and on nothing else about the machine, so it is fixed.
const gzipBlock = 1 << 20

// gzipOS is the operating-system byte of the gzip header: 3, Unix, as
// libarchive writes it there; fixed so that every machine gives the same bytes.
const gzipOS = 3

// NewGzip returns a gzip writer to w at the given level (1 to 9; 0 means
// DefaultLevel) whose output depends on its input and the level only. The
// header holds no name and no time. It must be closed also after a failure,
// because compression runs in goroutines of its own.
func NewGzip(w io.Writer, level int) (io.WriteCloser, error) {
	if err := CheckLevel(level); err != nil {
		return nil, err
	}
	if level == 0 {
		level = defaultLevel
	}
	z, err := pgzip.NewWriterLevel(w, level)
	if err != nil {
		return nil, err
	}
	if err := z.SetConcurrency(gzipBlock, runtime.GOMAXPROCS(0)+1); err != nil {
		return nil, err
	}
	z.OS = gzipOS
	// pgzip stores the low 32 bits of the zero time.Time, which is not 0.
	z.ModTime = time.Unix(0, 0)
	return gzipWriter{z}, nil
}

// CheckLevel says whether NewGzip takes the level.
func CheckLevel(level int) error {
	if level < 0 || level > 9 {
		return fmt.Errorf("gzip level %d is not within 1 to 9", level)
	}
	return nil
}

type gzipWriter struct{ *pgzip.Writer }

func (z gzipWriter) Close() error {
	err := z.Writer.Close()
	if err != nil {
		// After a failed write pgzip's Close returns before it stops the
		// goroutine that waits for blocks; Reset stops it.
		z.Reset(io.Discard)
	}
	return err
}
