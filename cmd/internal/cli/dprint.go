package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"perfsim/io/fault"
	"perfsim/io/fileset"
	"perfsim/io/tenstorrent/dprint"
)

func newDprintCommand() *cobra.Command {
	var dialect, out, dir string
	var prefix, shared bool
	var riscs int
	c := &cobra.Command{
		Use:   "dprint [flags] DUMP",
		Short: "Decode dumped kernel print buffers",
		Long: `dprint prints what kernels have printed, from a dump of their print buffers: 204
bytes a processor, processors of a core one after the other. Signals between
processors order the output as the vendor's server does. Dialects: 2024 (RAISE
and WAIT, bfloat16 tiles) and current. What does not decode is reported with its
place, and the rest is printed.`,
		Example: `  perfsim dprint --prefix buffers.bin
  perfsim dprint --dialect 2024 --shared buffers.bin
  perfsim dprint --files out/ buffers.bin`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			o := dprint.Options{Prefix: prefix, Shared: shared}
			switch dialect {
			case "2024":
				o.Dialect = dprint.Dialect2024
			case "current":
				o.Dialect = dprint.DialectCurrent
			default:
				return usagef("--dialect %q is not 2024 or current", dialect)
			}
			if riscs < 1 || riscs > 64 {
				return usagef("--processors %d is not 1 to 64", riscs)
			}
			if dir != "" && (shared || out != "-") {
				return usagef("--files goes with neither --shared nor --output")
			}
			dump, err := readRaw(args[0])
			if err != nil {
				return err
			}
			key := func(i, x, y int) dprint.Key { return dprint.Key{X: x, Y: y, Risc: i % riscs} }
			var bad []dprint.Problem
			var written byteCount
			if dir != "" {
				bad, err = dprintFiles(dir, dump, o, key)
			} else {
				err = save(out, c.OutOrStdout(), func(w io.Writer) error {
					o.Out = io.MultiWriter(w, &written)
					if bad, err = dprint.DecodeDump(dump, o, key); err == nil && len(bad) > 0 && written.n == 0 {
						err = errors.New("nothing was decoded: no dump of print buffers")
					}
					return err
				})
			}
			for _, b := range bad {
				sayf(c.ErrOrStderr(), "perfsim: %sbyte %d: %s\n", b.Key.Prefix(), b.Offset, b.Reason)
			}
			if err != nil && isText(dump) {
				err = errors.New("text, such as run --dprint writes: a dump is binary")
			}
			if err != nil {
				return notA(c.Context(), "dump of print buffers", args[0], fmt.Errorf("%s: %w", args[0], err))
			}
			return nil
		},
	}
	fl := c.Flags()
	fl.StringVar(&dialect, "dialect", "current", "2024 or current")
	fl.BoolVar(&prefix, "prefix", false, "start lines with device, core and processor")
	fl.BoolVar(&shared, "shared", false, "one stream for all processors, as the server of 2024 had")
	fl.IntVar(&riscs, "processors", 5, "buffers of a core in the dump")
	fl.StringVarP(&out, "output", "o", "-", "file to print to")
	fl.StringVar(&dir, "files", "", "folder for one file a processor, named as the vendor's")
	return c
}

// byteCount counts what is written to it.
type byteCount struct{ n int64 }

func (c *byteCount) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}

// isText reports whether b begins as no dump of print buffers does: those have
// counters of four bytes.
func isText(b []byte) bool {
	control := func(r rune) bool { return r < ' ' && r != '\n' && r != '\r' && r != '\t' }
	return bytes.IndexFunc(b[:min(len(b), 4096)], control) < 0
}

// dprintFiles writes one file a processor.
func dprintFiles(dir string, dump []byte, o dprint.Options, key func(i, x, y int) dprint.Key) (bad []dprint.Problem, err error) {
	set, err := fileset.Open(dir)
	if err != nil {
		return nil, err
	}
	defer set.Abort()
	var files []*os.File
	var names []string
	var openErr error
	o.File = func(k dprint.Key) io.Writer {
		f, err := os.Create(filepath.Join(set.Staging(), k.FileName()))
		if err != nil {
			openErr = errors.Join(openErr, err)
			return io.Discard
		}
		files, names = append(files, f), append(names, k.FileName())
		return fault.Writer(f, f.Name())
	}
	bad, err = dprint.DecodeDump(dump, o, key)
	err = errors.Join(err, openErr)
	for _, f := range files {
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return bad, set.Name(err)
	}
	return bad, set.Commit(names)
}
