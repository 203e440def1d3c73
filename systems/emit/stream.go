package emit

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"perfsim/components"
	"perfsim/io/catapult"
	"perfsim/io/pttf"
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
			if err := pack(ctx, pw, w, s); err != nil {
				pw.Close() // the first error is the one to tell
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
func pack(ctx context.Context, pw *pttf.Writer, w *components.World, s streamed) error {
	render := func(out io.Writer) error {
		return catapult.Write(ctx, out, w, s.block, components.RunA, false, max(1, w.Config.Jobs))
	}
	var size counter
	if err := render(&size); err != nil {
		return err
	}
	r, out := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := render(out)
		out.CloseWithError(err) // nil becomes the end of the stream
		done <- err
	}()
	err := pw.Add(ctx, s.name, int64(size), time.Time{}, r)
	r.CloseWithError(context.Canceled) // lets the renderer go where Add gave up
	if rerr := <-done; err == nil {
		err = rerr
	}
	return err
}

// counter counts bytes and drops them.
type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}
