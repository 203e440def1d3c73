package emit

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"perfsim/components"
	"perfsim/io/neuron/pttf"
)

// streamed is a trace that goes straight into the package.
type streamed struct {
	name  string
	block int
}

// stream packs the run A traces without writing them as files first. The
// archive wants the size of a member before its bytes, so that every trace is
// rendered twice: rendering is several times as fast as compressing, and far
// cheaper than a file that is written and read again. The bytes are those of
// the package of the files.
func (o *Output) stream(ctx context.Context, w *components.World, log func(string)) error {
	if len(o.streams) == 0 {
		return nil
	}
	say := log
	if say == nil {
		say = func(string) {}
	}
	slices.SortFunc(o.streams, func(a, b streamed) int { return cmp.Compare(a.name, b.name) })
	slot := o.slot(pttf.FileName, "package")
	size, err := o.write(pttf.FileName, func(out io.Writer) error {
		pw, err := pttf.NewWriter(out, pttf.Options{Log: log})
		if err != nil {
			return err
		}
		for _, s := range o.streams {
			if err := o.pack(ctx, pw, w, s); err != nil {
				pw.Close() // the first error is the one to report
				return fmt.Errorf("%s: %w", s.name, err)
			}
			say("Added to tarball: " + s.name)
		}
		return pw.Close()
	})
	if err != nil {
		return err
	}
	o.Artifacts[slot].Size = size
	say("Successfully created " + pttf.FileName)
	return nil
}

// pack adds one trace to the package.
func (o *Output) pack(ctx context.Context, pw *pttf.Writer, w *components.World, s streamed) error {
	render := func(out io.Writer) error {
		return o.Style.Write(ctx, out, w, s.block, components.RunA, false, max(1, w.Config.Jobs))
	}
	var size counter
	if err := render(&size); err != nil {
		return err
	}
	r := rendered(render)
	err := pw.Add(ctx, s.name, int64(size), time.Time{}, r)
	if cerr := r.Close(); err == nil {
		err = cerr
	}
	return err
}

// source has traces rendered once more instead of read, where their files are
// so large that they went past the page cache: the archive needs the sizes
// only, and reading is not cheaper than rendering.
func (o *Output) source(ctx context.Context, w *components.World) func(string, int64) io.ReadCloser {
	return func(path string, size int64) io.ReadCloser {
		key, ok := o.traces[filepath.Base(path)]
		if !ok || size <= o.cached || key.placement != w.Placement {
			return nil
		}
		return rendered(func(out io.Writer) error {
			return o.Style.Write(ctx, out, w, key.block, key.run, false, max(1, w.Config.Jobs))
		})
	}
}

// rendering is the output of a goroutine, to be read and closed.
type rendering struct {
	*io.PipeReader
	done chan error
}

func rendered(render func(io.Writer) error) io.ReadCloser {
	r, out := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := render(out)
		out.CloseWithError(err) // nil becomes the end of the stream
		done <- err
	}()
	return rendering{r, done}
}

// Close lets the goroutine go where not all was read, waits for it and returns
// its error.
func (r rendering) Close() error {
	r.PipeReader.CloseWithError(context.Canceled)
	return <-r.done
}

// counter counts bytes and drops them.
type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}
