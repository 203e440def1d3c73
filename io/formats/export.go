package formats

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/pgzip"

	"perfsim/components"
	"perfsim/io/format"
	"perfsim/io/internal/atomicfile"
)

// packings are the endings that ask for compression.
var packings = []struct {
	suffix string
	wrap   func(w io.Writer, jobs int) (io.WriteCloser, error)
}{
	{".gz", gzipped},
	{".zst", zstdFrames},
}

// FindExporter returns the exporter called name, or where name is "" the one
// whose suffix path has, a compression's ending left aside.
func FindExporter(path, name string) (format.Exporter, error) {
	base := path
	for _, p := range packings {
		base = strings.TrimSuffix(base, p.suffix)
	}
	var known []string
	var best format.Exporter
	for _, e := range Exporters() {
		known = append(known, e.Name+" ("+e.Suffix+")")
		if name == e.Name {
			return e, nil
		}
		if name == "" && strings.HasSuffix(base, e.Suffix) && len(e.Suffix) > len(best.Suffix) {
			best = e
		}
	}
	switch {
	case name != "":
		return best, fmt.Errorf("format %q is not one of %s", name, strings.Join(known, ", "))
	case best.Name == "":
		return best, fmt.Errorf("%s: the ending names no format that can be written: %s", path, strings.Join(known, ", "))
	}
	return best, nil
}

// Export writes m to path by e, compressed where the ending says so, "-" to
// stdout, and returns the bytes written. The file appears when it is whole.
func Export(ctx context.Context, path string, stdout io.Writer, e format.Exporter, m *components.Module, opt format.Options) (int64, error) {
	if path == "-" {
		return export(ctx, path, format.Raw(stdout), e, m, opt)
	}
	f, err := atomicfile.Create(path)
	if err != nil {
		return 0, err
	}
	defer f.Abort()
	n, err := export(ctx, path, f, e, m, opt)
	if err != nil {
		return 0, err
	}
	return n, f.Commit()
}

func export(ctx context.Context, path string, out io.Writer, e format.Exporter, m *components.Module, opt format.Options) (int64, error) {
	count := &counter{w: out}
	for _, p := range packings {
		if strings.HasSuffix(path, p.suffix) {
			z, err := p.wrap(count, opt.Jobs)
			if err != nil {
				return 0, err
			}
			if err := e.Module(ctx, z, m, opt); err != nil {
				z.Close() // the first error is the one to report
				return 0, err
			}
			err = z.Close()
			return count.n, err
		}
	}
	err := e.Module(ctx, count, m, opt)
	return count.n, err
}

// counter counts what goes through it.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// gzipBlock is fixed, because the bytes depend on it.
const gzipBlock = 1 << 20

func gzipped(w io.Writer, jobs int) (io.WriteCloser, error) {
	z, err := pgzip.NewWriterLevel(w, 6)
	if err != nil {
		return nil, err
	}
	return z, z.SetConcurrency(gzipBlock, max(1, jobs))
}
