package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"perfsim/components/zonelog"
	"perfsim/io/tenstorrent/profilelog"
)

func newProfileDecode() *cobra.Command {
	var layout, out, version, arch string
	var freq float64
	var device int32
	var sources []string
	c := &cobra.Command{
		Use:   "decode [flags] DUMP...",
		Short: "Decode dumps of profiler buffers to a device log",
		Long: `decode reads dumps of the profiler's buffers, little-endian 32-bit words, one
file for each processor's buffer or several one after the other, and writes them
as profile_log_device.csv. What does not decode is reported with its word and
skipped. The flat core id of the dump becomes core_x. Layouts: seed (2024-03,
run and host counter in one word), classic (2024-08 on, run host id), wide
(proposed: 18-bit zone ids, 42-bit times).`,
		Example: `  perfsim profile decode -o log.csv --sources zone_src_locations.log dram.bin
  perfsim profile decode --layout seed --version V5 l1.bin`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			y, ok := map[string]profilelog.Layout{"seed": profilelog.LayoutSeed, "classic": profilelog.LayoutClassic, "wide": profilelog.LayoutWideID}[layout]
			if !ok {
				return usagef("--layout %q is not seed, classic or wide", layout)
			}
			src, err := readSources(sources)
			if err != nil {
				return err
			}
			for _, x := range src.Collisions {
				sayf(c.ErrOrStderr(), "perfsim: zones %s and %s have the same id %d; times of both appear under the first\n", x.A.Text, x.B.Text, x.A.ID)
			}
			if !slices.Contains(append([]string{"V4"}, recordVersions...), version) {
				return usagef("--version %q is not V4 to V11", version)
			}
			problems, found := 0, 0
			err = save(out, c.OutOrStdout(), func(w io.Writer) error {
				lw, err := profilelog.NewWriter(w, version, arch, freq, 0)
				if err != nil {
					return usageError{err}
				}
				typed := version != "V4" && version != "V5" && version != "V6"
				for _, path := range args {
					dump, err := readRaw(path)
					if err != nil {
						return err
					}
					words, err := profilelog.Words(dump)
					if err != nil {
						return fmt.Errorf("%s: %w", path, err)
					}
					runs, bad := profilelog.DecodeRaw(words, y)
					for i, b := range bad {
						if i == 20 {
							sayf(c.ErrOrStderr(), "perfsim: %s: %d more\n", path, len(bad)-i)
							break
						}
						sayf(c.ErrOrStderr(), "perfsim: %s: word %d: %s\n", path, b.Word, b.Reason)
					}
					problems += len(bad)
					found += len(runs)
					if err := profilelog.RawRows(runs, y, src, typed, profilelog.RawLane(device), lw.Write); err != nil {
						return err
					}
				}
				if found == 0 {
					return fmt.Errorf("no launch decodes as layout %s (%s)", layout, count(problems, "problem"))
				}
				return lw.Flush()
			})
			if err != nil {
				return err
			}
			sayf(c.ErrOrStderr(), "perfsim: %s decoded, %s\n", launches(found), count(problems, "problem"))
			return nil
		},
	}
	fl := c.Flags()
	fl.StringVar(&layout, "layout", "classic", "bit layout: seed, classic or wide")
	fl.StringVarP(&out, "output", "o", "-", "device log to write")
	fl.StringVar(&version, "version", "V9", "version of the log to write, V4 to V11")
	fl.StringVar(&arch, "arch", "wormhole_b0", "chip for the clock line")
	fl.Float64Var(&freq, "freq", 1000, "clock in MHz for the clock line")
	fl.Int32Var(&device, "device", 0, "device number for the log")
	fl.StringSliceVar(&sources, "sources", nil, "zone_src_locations.log, for names")
	return c
}

// readRaw reads a dump of bounded size: the buffers of a whole device are
// below 64 MiB.
func readRaw(path string) ([]byte, error) {
	const limit = 1 << 30
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if len(b) > limit {
		return nil, fmt.Errorf("%s: more than %d bytes", path, limit)
	}
	return b, nil
}

func newProfileGen() *cobra.Command {
	var o profilelog.GenOptions
	c := &cobra.Command{
		Use:   "gen [flags] OUTPUT",
		Short: "Write a synthetic device log of any size",
		Long: `gen writes a log of realistic shape: every core of every device takes part in
every launch, each processor records firmware, kernel and user zones. The same
seed gives the same bytes. - is standard output; .gz compresses.`,
		Example: `  perfsim profile gen --rows 10000000 big.csv
  perfsim profile gen --version V5 --lose-ends 1000 damaged.csv.gz`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if o.Rows < 1 {
				return usagef("--rows %d is not at least 1", o.Rows)
			}
			if !slices.Contains(recordVersions, o.Version) {
				return usagef("--version %q is not V5 to V11", o.Version)
			}
			var rows int64
			var zones map[string]profilelog.GenTotal
			err := save(args[0], c.OutOrStdout(), func(w io.Writer) (err error) {
				rows, zones, err = profilelog.Generate(w, o)
				return err
			})
			if err != nil || args[0] == "-" {
				return err
			}
			var n, lost uint64
			for _, z := range zones {
				n += z.Count
				lost += z.Lost
			}
			_, err = sayf(c.OutOrStdout(), "%s: %d rows, %d zones, %d ends left out\n", args[0], rows, n, lost)
			return err
		},
	}
	fl := c.Flags()
	fl.Int64Var(&o.Rows, "rows", 1_000_000, "least number of rows")
	fl.StringVar(&o.Version, "version", "V11", "log version, V5 to V11")
	fl.IntVar(&o.Devices, "devices", 1, "devices")
	fl.IntVar(&o.Width, "width", 8, "cores in a row")
	fl.IntVar(&o.Height, "height", 8, "rows of cores")
	fl.IntVar(&o.Zones, "zones", 6, "user zones of a processor in a launch")
	fl.IntVar(&o.Nest, "nest", 2, "depth of their nesting")
	fl.Uint64Var(&o.Seed, "seed", 1, "seed")
	fl.IntVar(&o.LoseEnds, "lose-ends", 0, "leave out the end of one user zone in so many")
	return c
}

func newProfileID() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "id NAME FILE LINE",
		Short: "Give the id of a zone, as its hash is folded on the device",
		Example: `  perfsim profile id l1_to_l1 ./kernel.cpp 43
  perfsim profile id --json read_dram_to_l1 ./kernel.cpp 23`,
		Args: cobra.ExactArgs(3),
		RunE: func(c *cobra.Command, args []string) error {
			line, err := strconv.ParseUint(args[2], 10, 31)
			if err != nil {
				return usagef("line %q is not a number", args[2])
			}
			text := fmt.Sprintf("%s,%s,%d,KERNEL_PROFILER", args[0], args[1], line)
			start := uint32(zonelog.ZoneHash16(text))
			end := start + zonelog.ZoneEndBit
			if asJSON {
				return json.NewEncoder(c.OutOrStdout()).Encode(map[string]any{"text": text, "start_id": start, "end_id": end})
			}
			_, err = sayf(c.OutOrStdout(), "%d (end %d)\n", start, end)
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
