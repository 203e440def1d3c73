package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"perfsim/io/format"
	"perfsim/io/neuron/pttf"
)

func newPackCommand() *cobra.Command {
	var out, names string
	var asJSON, verbose, quiet bool
	var opt pttf.Options
	c := &cobra.Command{
		Use:   "pack [flags] DIR",
		Short: "Pack the trace files of a folder into file.perf-sim",
		Long: `pack searches DIR, and no folder below it, for regular files in whose name
perf_sim\..*\.json is found, and packs them into a gzipped PAX tar, as the
compiler's packaging pass does. The same traces give the same bytes on every
machine: members are sorted, without times and owners. --as-found keeps the
order of the directory, paths, times, modes and owner numbers, as the compiler
does.
A folder without traces is no error: nothing is written, and a line says so.`,
		Example: `  perfsim pack out
  perfsim pack -o traces.perf-sim out
  perfsim pack -o - out | bsdtar -tvf -`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case names != "base" && names != "path":
				return usagef("--names %q is not base or path", names)
			case opt.Level < 1 || opt.Level > 9:
				return usagef("--level %d is not within 1 to 9", opt.Level)
			case out == "-" && asJSON:
				return usagef("--json and -o - both want standard output")
			}
			// As found means the path as found too, unless other names are asked for.
			opt.PathNames = names == "path" || opt.AsFound && !c.Flags().Changed("names")
			if out == "" {
				out = filepath.Join(args[0], pttf.FileName)
			}
			p := newProgress(c.ErrOrStderr(), quiet || verbose)
			defer p.close()
			started := false
			opt.Progress = func(done, total int64) {
				if !started {
					started = true
					p.start("packing", total, true)
				}
				p.set(done)
			}
			opt.Log = func(line string) {
				// Without -v only the line that explains why there
				// is no package; the error says what failed.
				if verbose || strings.HasPrefix(line, "No perf_sim trace files") {
					fmt.Fprintln(c.ErrOrStderr(), line)
				}
			}
			rep, err := pack(c.Context(), args[0], out, c.OutOrStdout(), opt)
			p.close()
			switch {
			case err != nil:
				return err
			case asJSON:
				return writeJSON(c.OutOrStdout(), rep)
			case out == "-" || !rep.Created:
				return nil
			}
			_, err = sayf(c.OutOrStdout(), "%s: %s, %s\n", rep.Path, count(len(rep.Files), "trace"), humanize.IBytes(uint64(rep.Size)))
			return err
		},
	}
	fl := c.Flags()
	fl.StringVarP(&out, "output", "o", "", "the package to write; - is standard output (default DIR/file.perf-sim)")
	fl.BoolVar(&opt.AsFound, "as-found", false, "keep directory order, paths, times (modification, access, change), modes and owner numbers")
	fl.StringVar(&names, "names", "base", "base: name members by their base name; path: by their path as found, the default with --as-found")
	fl.IntVar(&opt.Level, "level", 1, "gzip level, 1 (the documented one) to 9")
	fl.BoolVar(&asJSON, "json", false, "print JSON")
	fl.BoolVarP(&verbose, "verbose", "v", false, "print the documented log lines on stderr")
	fl.BoolVarP(&quiet, "quiet", "q", false, "no progress on the terminal")
	return c
}

// packReport is the output of `pack --json`.
type packReport struct {
	Created bool     `json:"created"` // packages that were written
	Path    string   `json:"path,omitempty"`
	Size    int64    `json:"size"`
	Files   []string `json:"files"`
}

func pack(ctx context.Context, dir, out string, stdout io.Writer, opt pttf.Options) (packReport, error) {
	if out != "-" {
		r, err := pttf.Package(ctx, dir, out, opt)
		rep := packReport{r.Created, r.Path, r.Size, r.Files}
		if rep.Files == nil {
			rep.Files = []string{}
		}
		return rep, err
	}
	files, err := pttf.Collect(dir, opt.Log)
	if err == nil && len(files) == 0 {
		err = errors.New("no trace files in " + dir + ", so no package to print")
	}
	if err != nil {
		return packReport{}, err
	}
	w := bufio.NewWriterSize(format.Raw(stdout), 1<<20)
	if err := pttf.WriteTo(ctx, w, files, opt); err != nil {
		return packReport{}, err
	}
	return packReport{Created: true}, w.Flush()
}

// count writes a number with its noun.
func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return humanize.Comma(int64(n)) + " " + noun
}

func newUnpackCommand() *cobra.Command {
	var x extractFlags
	var list, asJSON bool
	c := &cobra.Command{
		Use:   "unpack [flags] FILE [MEMBER...]",
		Short: "List or extract a package of traces",
		Long: `unpack takes a package apart: file.perf-sim or any other tar, gzipped or not.
- is standard input. The package is read to its last byte: a wrong checksum, a
cut or bytes after the end are errors. Extraction is all or nothing, never
leaves its folder, and does not replace files unless asked to. Links and devices
are refused.`,
		Example: `  perfsim unpack --list file.perf-sim
  perfsim unpack -C traces file.perf-sim
  perfsim unpack --flat file.perf-sim perf_sim.m.f.bb.json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			lim, err := x.limits(pttf.DefaultLimits)
			if err != nil {
				return err
			}
			name, in, err := openArg(c, args[0])
			if err != nil {
				return err
			}
			defer in.Close()
			p := newProgress(c.ErrOrStderr(), x.quiet)
			defer p.close()
			r, err := pttf.NewReader(c.Context(), p.reading(in), lim)
			if err == nil && list {
				var members []pttf.Entry
				if members, err = listed(r, args[1:]); err == nil {
					p.close()
					return printMembers(c.OutOrStdout(), members, asJSON)
				}
			}
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			files, err := pttf.Extract(r, x.dir, x.options(args[1:]))
			if err != nil && len(files) == 0 {
				return notA(c.Context(), "package", args[0], extractError(name, err))
			} else if err != nil {
				return extractError(name, err)
			}
			p.close()
			return printExtracted(c.OutOrStdout(), x.dir, files, asJSON)
		},
	}
	x.add(c)
	c.Flags().BoolVarP(&list, "list", "l", false, "list the members instead of extracting them")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// extractFlags are the flags of the commands that extract members.
type extractFlags struct {
	dir       string
	overwrite bool
	flat      bool
	max       string
	quiet     bool
}

func (x *extractFlags) add(c *cobra.Command) {
	fl := c.Flags()
	fl.StringVarP(&x.dir, "directory", "C", ".", "folder to extract to, made if need be")
	fl.StringVarP(&x.dir, "output", "o", ".", "the same as --directory")
	fl.BoolVar(&x.overwrite, "overwrite", false, "replace files that exist")
	fl.BoolVar(&x.flat, "flat", false, "drop the folders of the names; also for names that are absolute or climb out")
	fl.StringVar(&x.max, "max-bytes", "", "refuse archives that expand to more, such as 10GB")
	fl.BoolVarP(&x.quiet, "quiet", "q", false, "no progress on the terminal")
}

func (x *extractFlags) limits(lim pttf.Limits) (pttf.Limits, error) {
	if x.max == "" {
		return lim, nil
	}
	n, err := humanize.ParseBytes(x.max)
	if err != nil || n == 0 || n > 1<<62 {
		return lim, usagef("--max-bytes %q is not a size", x.max)
	}
	// Who names a size means it: no ratio applies then.
	lim.Bytes, lim.Ratio = int64(n), 0
	return lim, nil
}

func (x *extractFlags) options(names []string) pttf.ExtractOptions {
	return pttf.ExtractOptions{Overwrite: x.overwrite, Flat: x.flat, Names: names}
}

// extractError names the archive, and the flag that would have helped.
func extractError(archive string, err error) error {
	hint := ""
	switch {
	case errors.Is(err, pttf.ErrFileExists):
		hint = " (--overwrite replaces it)"
	case errors.Is(err, pttf.ErrLimit):
		hint = " (--max-bytes allows more)"
	}
	return fmt.Errorf("%s: %w%s", archive, err, hint)
}

// openArg opens a file argument, where - is standard input.
// The caller closes r.
func openArg(c *cobra.Command, arg string) (name string, r io.ReadCloser, err error) {
	if arg == "-" {
		return "standard input", io.NopCloser(c.InOrStdin()), nil
	}
	f, err := os.Open(arg)
	if err != nil {
		return arg, nil, err
	}
	if fi, err := f.Stat(); err == nil && fi.IsDir() {
		f.Close()
		return arg, nil, &fs.PathError{Op: "read", Path: arg, Err: errors.New("is a directory")}
	}
	return arg, f, nil
}

// reading shows how much of r has been read.
func (p *progress) reading(r io.Reader) io.Reader {
	var size int64
	if f, ok := r.(*os.File); ok {
		if fi, err := f.Stat(); err == nil && fi.Mode().IsRegular() {
			size = fi.Size()
		}
	}
	p.start("reading", size, true)
	return &progressReader{r: r, p: p}
}

type progressReader struct {
	r io.Reader
	p *progress
	n int64
}

func (r *progressReader) Read(b []byte) (int, error) {
	n, err := r.r.Read(b)
	r.n += int64(n)
	r.p.set(r.n)
	return n, err
}

// listed reads all of an archive and returns the members of those names, all
// of them if there are none.
func listed(r *pttf.Reader, names []string) ([]pttf.Entry, error) {
	all := []pttf.Entry{}
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	if len(names) == 0 {
		return all, nil
	}
	some := []pttf.Entry{}
	for _, n := range names {
		before := len(some)
		for _, e := range all {
			if e.Name == n || strings.TrimPrefix(e.Name, "./") == n {
				some = append(some, e)
			}
		}
		if len(some) == before {
			return nil, fmt.Errorf("no member is named %q", n)
		}
	}
	return some, nil
}

// memberRow is a member in `--list --json`.
type memberRow struct {
	Name   string `json:"name"` // path in the archive
	Kind   string `json:"kind"` // file, directory, link or special file
	Size   int64  `json:"size"`
	Mode   string `json:"mode"`             // permissions
	Time   string `json:"time"`             // time of the last change
	Link   string `json:"link,omitempty"`   // where a link points
	Sparse bool   `json:"sparse,omitempty"` // whether it has holes
	PAX    bool   `json:"pax,omitempty"`    // extended records
	// Layer is set for debug information.
	Layer string `json:"debug_layer,omitempty"`
}

func newMemberRow(e pttf.Entry) memberRow {
	return memberRow{Name: e.Name, Kind: e.Kind.String(), Size: e.Size, Mode: fmt.Sprintf("%04o", e.Mode&0o7777),
		Time: e.ModTime.UTC().Format("2006-01-02 15:04:05"), Link: e.Linkname, Sparse: e.Sparse, PAX: e.PAX}
}

func printMembers(w io.Writer, members []pttf.Entry, asJSON bool) error {
	if asJSON {
		rows := make([]memberRow, len(members))
		for i, e := range members {
			rows[i] = newMemberRow(e)
		}
		return writeJSON(w, rows)
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, e := range members {
		note := ""
		switch {
		case e.Sparse:
			note = " (sparse)"
		case e.Linkname != "":
			note = " (" + e.Kind.String() + " to " + printable(e.Linkname) + ")"
		case e.Kind != pttf.Regular:
			note = " (" + e.Kind.String() + ")"
		}
		sayf(tw, "%d\t %s\t %s%s\n", e.Size, e.ModTime.UTC().Format("2006-01-02 15:04"), printable(e.Name), note)
	}
	return tw.Flush()
}

// printable quotes a name that would play tricks on a terminal.
func printable(s string) string {
	if q := strconv.Quote(s); q != `"`+s+`"` {
		return q
	}
	return s
}

func printExtracted(w io.Writer, dir string, files []pttf.Extracted, asJSON bool) error {
	if asJSON {
		if files == nil {
			files = []pttf.Extracted{}
		}
		return writeJSON(w, files)
	}
	b := bufio.NewWriter(w)
	for _, f := range files {
		fmt.Fprintln(b, printable(filepath.Join(dir, filepath.FromSlash(f.Path))))
	}
	return b.Flush()
}
